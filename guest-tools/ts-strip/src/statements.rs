//! Statements: which of them go away, and where a `;` has to come in so that the others stay apart.

use std::collections::BTreeSet;

use oxc_ast::ast::*;
use oxc_ast_visit::walk;
use oxc_span::{GetSpan, Span};

use crate::erase::{Eraser, StatementList};

impl<'a> Eraser<'_, 'a> {
    pub(crate) fn statements(&mut self, statements: &[Statement<'a>]) {
        let function_level = std::mem::take(&mut self.at_function_level);
        self.lists.push(StatementList { function_level, enums: BTreeSet::new() });
        for statement in statements {
            let span = statement.span();
            if self.is_erased(statement) {
                self.edits.blank(span);
                self.edits.separate(span, span.end, false);
            } else {
                walk::walk_statement(self, statement);
                if let Some(blank) = self.edits.blank_ending_at(span.end) {
                    self.edits.separate(blank, span.end, false);
                }
            }
        }
        self.lists.pop();
    }

    /// A statement that is the body of another one.
    pub(crate) fn single_statement(&mut self, statement: &Statement<'a>) {
        if self.is_erased(statement) {
            self.edits.blank(statement.span());
            self.edits.put_semicolon(statement.span());
        } else {
            walk::walk_statement(self, statement);
        }
    }

    /// Whether a statement has no meaning at run time. Imports are looked at when all uses are known.
    pub(crate) fn is_erased(&self, statement: &Statement<'a>) -> bool {
        match statement {
            Statement::ExportDeclaration(export) => declaration_is_erased(&export.declaration),
            Statement::ExportDefaultDeclaration(export) => match &export.declaration {
                ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) => true,
                ExportDefaultDeclarationKind::FunctionDeclaration(function) => function.body.is_none(),
                ExportDefaultDeclarationKind::ClassDeclaration(class) => class.declare,
                ExportDefaultDeclarationKind::Identifier(name) => self.local_types.contains(name.name.as_str()),
                _ => false,
            },
            Statement::ExportNamedDeclaration(export) => {
                export.export_kind == ImportOrExportKind::Type
                    || (!export.specifiers.is_empty()
                        && export.specifiers.iter().all(|specifier| self.exports_type(specifier)))
            }
            Statement::ExportFromDeclaration(export) => {
                export.export_kind == ImportOrExportKind::Type
                    || (!export.specifiers.is_empty()
                        && export.specifiers.iter().all(|one| one.export_kind == ImportOrExportKind::Type))
            }
            Statement::ExportAllDeclaration(export) => export.export_kind == ImportOrExportKind::Type,
            Statement::TSNamespaceExportDeclaration(_) => true,
            statement => statement.as_declaration().is_some_and(declaration_is_erased),
        }
    }

    /// Keeps what begins with a type assertion from being read as something else once the assertion is gone:
    /// `<T>{}` as a block, `<T>function () {}` as a declaration.
    pub(crate) fn keep_statement_form(&mut self, expression: &Expression<'a>) {
        let Some(assertion) = leading_assertion(expression) else { return };
        let mut inner = &assertion.expression;
        while let Expression::TSTypeAssertion(next) = inner {
            inner = &next.expression;
        }
        let start = inner.span().start;
        let text = self.bytes(start, inner.span().end);
        let word = text.get(..crate::trivia::word_end(text, 0));
        if matches!(text.first(), Some(b'{' | b'"' | b'\''))
            || matches!(word, Some(b"function" | b"class" | b"let" | b"async"))
        {
            self.wrap(assertion);
        }
    }

    /// Keeps the value of `return`, `throw` and `yield` on their line, or they would end there.
    pub(crate) fn keep_on_line(&mut self, expression: &Expression<'a>) {
        if let Some(assertion) = leading_assertion(expression)
            && crate::trivia::has_newline(self.bytes(assertion.span.start, assertion.expression.span().start))
        {
            self.wrap(assertion);
        }
    }

    /// Puts what a type is asserted of in parentheses.
    fn wrap(&mut self, assertion: &TSTypeAssertion<'a>) {
        self.edits.insert(assertion.span.start, "(");
        self.edits.insert(assertion.span.end, ")");
    }

    pub(crate) fn refuse_in_script(&mut self, span: Span) {
        if self.kind == crate::SourceKind::ScriptBody {
            self.refuse(
                span,
                "a script has no `import` and `export` declarations; write `await import(\"…\")`, and `return` the result",
            );
        }
    }
}

/// The type assertion that an expression begins with.
fn leading_assertion<'e, 'a>(mut expression: &'e Expression<'a>) -> Option<&'e TSTypeAssertion<'a>> {
    loop {
        expression = match expression {
            Expression::TSTypeAssertion(assertion) => return Some(assertion),
            Expression::BinaryExpression(it) => &it.left,
            Expression::LogicalExpression(it) => &it.left,
            Expression::ConditionalExpression(it) => &it.test,
            Expression::SequenceExpression(it) => it.expressions.first()?,
            Expression::TSAsExpression(it) => &it.expression,
            Expression::TSSatisfiesExpression(it) => &it.expression,
            Expression::AssignmentExpression(it) => match &it.left {
                AssignmentTarget::TSTypeAssertion(assertion) => return Some(assertion),
                _ => return None,
            },
            _ => return None,
        };
    }
}

fn declaration_is_erased(declaration: &Declaration<'_>) -> bool {
    match declaration {
        Declaration::VariableDeclaration(it) => it.declare,
        Declaration::FunctionDeclaration(it) => it.declare || it.body.is_none(),
        Declaration::ClassDeclaration(it) => it.declare,
        Declaration::TSEnumDeclaration(it) => it.declare,
        Declaration::TSNamespaceDeclaration(it) => it.declare || namespace_is_erased(it),
        Declaration::TSImportEqualsDeclaration(it) => it.import_kind == ImportOrExportKind::Type,
        Declaration::TSTypeAliasDeclaration(_)
        | Declaration::TSInterfaceDeclaration(_)
        | Declaration::TSExternalModuleDeclaration(_)
        | Declaration::TSGlobalDeclaration(_) => true,
    }
}

/// Whether a namespace holds nothing but types.
pub(crate) fn namespace_is_erased(mut namespace: &TSNamespaceDeclaration<'_>) -> bool {
    let block = loop {
        match &namespace.body {
            TSNamespaceDeclarationBody::TSNamespaceDeclaration(inner) => namespace = inner,
            TSNamespaceDeclarationBody::TSModuleBlock(block) => break block,
        }
    };
    block.body.iter().all(|statement| match statement {
        Statement::ExportDeclaration(export) => declaration_is_erased(&export.declaration),
        Statement::ExportNamedDeclaration(export) => export.export_kind == ImportOrExportKind::Type,
        Statement::EmptyStatement(_) => true,
        statement => statement.as_declaration().is_some_and(declaration_is_erased),
    })
}
