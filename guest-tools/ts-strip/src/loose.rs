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
                    other => other.as_expression().is_some_and(|expression| function_of(expression).is_some()),
                };
                let after = match &export.declaration {
                    ExportDefaultDeclarationKind::FunctionDeclaration(function) => {
                        format!("){}", call(&function.params))
                    }
                    other => other
                        .as_expression()
                        .and_then(function_of)
                        .map_or_else(|| ")".to_owned(), |parameters| format!("){}", call(parameters))),
                };
                self.enclose(span, "return (", &after);
                if is_function { Gives::Function } else { Gives::LastExpression }
            }
            Statement::FunctionDeclaration(function) if is_sole && !function.generator => {
                let Some(name) = &function.id else { return Gives::WhatItReturns };
                self.edits.insert(function.span.end, format!("; return {}{};", name.name, call(&function.params)));
                Gives::Function
            }
            Statement::ExpressionStatement(statement)
                if is_sole && let Some(parameters) = function_of(&statement.expression) =>
            {
                self.enclose(statement.expression.span(), "return (", &format!("){}", call(parameters)));
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

/// The call of a function that is a whole script, with the globals that its parameters name. One that takes something apart,
/// or has a name of its own for it, is given all of them.
fn call(parameters: &FormalParameters<'_>) -> String {
    let arguments = parameters.items.iter().map(|parameter| {
        let otherwise = if parameter.initializer.is_some() { "undefined" } else { "globalThis" };
        match &parameter.pattern {
            BindingPattern::BindingIdentifier(it) => format!("typeof {0}==='undefined'?{otherwise}:{0}", it.name),
            _ => otherwise.to_owned(),
        }
    });
    format!("({})", arguments.collect::<Vec<_>>().join(","))
}

/// The beginning of the first JSX element.
pub(crate) fn first_jsx(program: &Program<'_>) -> Option<u32> {
    struct Jsx(Option<u32>);
    impl<'a> Visit<'a> for Jsx {
        fn visit_jsx_element(&mut self, element: &JSXElement<'a>) {
            self.0 = self.0.or(Some(element.span.start));
        }
        fn visit_jsx_fragment(&mut self, fragment: &JSXFragment<'a>) {
            self.0 = self.0.or(Some(fragment.span.start));
        }
    }
    let mut found = Jsx(None);
    found.visit_program(program);
    found.0
}

/// The parameters of an expression that is a function, perhaps in parentheses or with a type.
fn function_of<'e, 'a>(expression: &'e Expression<'a>) -> Option<&'e FormalParameters<'a>> {
    let mut expression = expression;
    loop {
        expression = match expression {
            Expression::ArrowFunctionExpression(function) => return Some(&function.params),
            Expression::FunctionExpression(function) => return (!function.generator).then_some(&function.params),
            Expression::ParenthesizedExpression(it) => &it.expression,
            Expression::TSAsExpression(it) => &it.expression,
            Expression::TSSatisfiesExpression(it) => &it.expression,
            Expression::TSNonNullExpression(it) => &it.expression,
            _ => return None,
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
