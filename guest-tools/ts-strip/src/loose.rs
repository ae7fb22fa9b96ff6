//! Scripts as models write them: which value they mean to give, where they do not say `return`.
//!
//! It must never change what a script does that says `return` itself.

use oxc_ast::ast::*;
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan, Span};
use oxc_syntax::scope::ScopeFlags;

use crate::erase::Eraser;
use crate::{Gives, SourceKind};

impl<'a> Eraser<'_, 'a> {
    /// Has a loose body give the value that it means. To be called when the whole source was walked.
    pub(crate) fn find_value(&mut self, program: &Program<'a>) -> Gives {
        if self.kind != SourceKind::LooseBody {
            return Gives::WhatItReturns;
        }
        let means_something = |statement: &&Statement<'a>| {
            !self.is_erased(statement)
                && !matches!(statement, Statement::EmptyStatement(_) | Statement::ImportDeclaration(_))
        };
        let statements: Vec<&Statement<'a>> = program.body.iter().filter(means_something).collect();
        let Some(last) = statements.last() else {
            return match program.directives.last() {
                // A text alone is read as an instruction to the engine.
                Some(directive) => {
                    self.enclose(directive.expression.span, "return (", ")");
                    Gives::LastExpression
                }
                None => Gives::WhatItReturns,
            };
        };
        let is_sole = statements.len() == 1;
        match last {
            Statement::ExportDefaultDeclaration(export) => {
                let span = export.declaration.span();
                self.edits.blank(Span::new(export.span.start, span.start));
                let is_function = match &export.declaration {
                    ExportDefaultDeclarationKind::FunctionDeclaration(_) => true,
                    other => other.as_expression().is_some_and(is_function),
                };
                self.enclose(span, "return (", if is_function { ")()" } else { ")" });
                if is_function { Gives::Function } else { Gives::LastExpression }
            }
            Statement::FunctionDeclaration(function) if is_sole && !function.generator => {
                let Some(name) = &function.id else { return Gives::WhatItReturns };
                self.edits.insert(function.span.end, format!("; return {}();", name.name));
                Gives::Function
            }
            Statement::ExpressionStatement(statement) if is_sole && is_function(&statement.expression) => {
                self.enclose(statement.expression.span(), "return (", ")()");
                Gives::Function
            }
            Statement::ExpressionStatement(statement) if !returns(&program.body) => {
                self.enclose(statement.expression.span(), "return (", ")");
                Gives::LastExpression
            }
            _ => Gives::WhatItReturns,
        }
    }

    fn enclose(&mut self, span: Span, before: &str, after: &str) {
        self.edits.insert(span.start, before);
        self.edits.insert(span.end, after);
    }

    /// Whether the source is a script as models write them, where `export` says nothing.
    pub(crate) fn is_loose(&self) -> bool {
        self.kind == SourceKind::LooseBody
    }
}

/// Whether an expression is a function, perhaps in parentheses or with a type.
fn is_function(expression: &Expression<'_>) -> bool {
    let mut expression = expression;
    loop {
        expression = match expression {
            Expression::ArrowFunctionExpression(_) => return true,
            Expression::FunctionExpression(function) => return !function.generator,
            Expression::ParenthesizedExpression(it) => &it.expression,
            Expression::TSAsExpression(it) => &it.expression,
            Expression::TSSatisfiesExpression(it) => &it.expression,
            Expression::TSNonNullExpression(it) => &it.expression,
            _ => return false,
        };
    }
}

/// Whether there is a `return` outside of the functions in these.
fn returns(statements: &[Statement<'_>]) -> bool {
    struct Returns(bool);
    impl<'a> Visit<'a> for Returns {
        fn visit_return_statement(&mut self, _: &ReturnStatement<'a>) {
            self.0 = true;
        }
        fn visit_function(&mut self, _: &Function<'a>, _: ScopeFlags) {}
        fn visit_class(&mut self, _: &Class<'a>) {}
        fn visit_expression(&mut self, _: &Expression<'a>) {}
        fn visit_statement(&mut self, statement: &Statement<'a>) {
            if !self.0 {
                walk::walk_statement(self, statement);
            }
        }
    }
    let mut found = Returns(false);
    for statement in statements {
        found.visit_statement(statement);
    }
    found.0
}
