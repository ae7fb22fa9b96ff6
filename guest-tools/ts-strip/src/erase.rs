//! The walk over a parsed source that decides what is blanked. Which node is treated how is in the modules beside it;
//! here is what they share, and the dispatch.
//!
//! Types are never walked: they are blanked as a whole. So every reference to a name that the walk meets is one to a
//! value, and everything it recurses into is bounded by the nesting of the source.

use std::collections::{BTreeMap, BTreeSet};

use oxc_allocator::ArenaVec;
use oxc_ast::ast::*;
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan, Span};

use crate::edits::{Edited, Edits};
use crate::enums::{EnumScope, Value};
use crate::{Gives, SourceKind, StripError, StripErrorKind, Stripped, trivia};

pub(crate) struct Eraser<'s, 'a> {
    pub(crate) source: &'s str,
    pub(crate) kind: SourceKind,
    pub(crate) edits: Edits<'s>,
    /// The first error, by its place in the source.
    error: Option<(u32, String, Option<String>)>,
    /// Where the value comes from.
    gives: Gives,
    /// Regular expressions.
    patterns: Vec<std::ops::Range<usize>>,
    /// Names that are used as values anywhere.
    pub(crate) values_used: BTreeSet<&'a str>,
    /// Names at the top that are types only.
    pub(crate) local_types: BTreeSet<&'a str>,
    /// The enums whose initialisers are being walked, innermost last.
    pub(crate) enum_scopes: Vec<EnumScope<'a>>,
    /// The names of the members of each enum.
    pub(crate) enum_members: BTreeMap<&'a str, BTreeSet<String>>,
    /// What is known of the members of each enum.
    pub(crate) enum_values: BTreeMap<&'a str, BTreeMap<String, Value>>,
    /// The lists of statements around, innermost last.
    pub(crate) lists: Vec<StatementList<'a>>,
    /// Whether the list of statements that is walked next is that of a function or of the source.
    pub(crate) at_function_level: bool,
}

/// A list of statements that is being walked.
pub(crate) struct StatementList<'a> {
    /// Whether a `var` in it belongs to it.
    pub(crate) function_level: bool,
    /// Names of the enums in it so far.
    pub(crate) enums: BTreeSet<&'a str>,
}

impl<'s, 'a> Eraser<'s, 'a> {
    pub(crate) fn new(source: &'s str, kind: SourceKind) -> Self {
        Self {
            source,
            kind,
            edits: Edits::new(source),
            error: None,
            gives: Gives::WhatItReturns,
            patterns: Vec::new(),
            values_used: BTreeSet::new(),
            local_types: BTreeSet::new(),
            enum_scopes: Vec::new(),
            enum_members: BTreeMap::new(),
            enum_values: BTreeMap::new(),
            lists: Vec::new(),
            at_function_level: false,
        }
    }

    pub(crate) fn erase(&mut self, program: &Program<'a>) {
        self.find_local_types(&program.body);
        self.at_function_level = true;
        self.visit_program(program);
        self.erase_unused_imports(&program.body);
        self.gives = self.find_value(program);
    }

    pub(crate) fn finish(self) -> Result<Stripped, StripError> {
        if let Some((offset, message, module)) = self.error {
            let error = StripError::at(self.source, offset as usize, StripErrorKind::Unsupported, message);
            return Err(StripError { module, ..error });
        }
        let (source, gives, patterns) = (self.source, self.gives, self.patterns);
        match self.edits.finish() {
            Ok(Edited { code, moved, insertions }) => {
                Ok(Stripped { code, columns_moved: moved, insertions, gives, comments: Vec::new(), patterns })
            }
            Err(error) => Err(StripError::syntax(source, error.utf8_error().valid_up_to(), "cannot be converted")),
        }
    }

    /// Refuses the source for what is at `span`.
    pub(crate) fn refuse(&mut self, span: Span, message: impl Into<String>) {
        if self.error.as_ref().is_none_or(|(start, ..)| span.start < *start) {
            self.error = Some((span.start, message.into(), None));
        }
    }

    /// Refuses the source for a module that it needs.
    pub(crate) fn refuse_module(&mut self, span: Span, module: &str) {
        if self.error.as_ref().is_none_or(|(start, ..)| span.start < *start) {
            let shown = module.escape_debug();
            let message = format!("`{shown}` can not be imported: there are no modules here");
            self.error = Some((span.start, message, Some(module.to_owned())));
        }
    }

    pub(crate) fn bytes(&self, start: u32, end: u32) -> &'s [u8] {
        self.source.as_bytes().get(start as usize..end as usize).unwrap_or_default()
    }

    /// The next place that is neither blank nor a comment.
    pub(crate) fn skip(&self, from: u32) -> u32 {
        u32::try_from(trivia::skip(self.source.as_bytes(), from as usize)).unwrap_or(u32::MAX)
    }

    /// Blanks the next token, if it is this byte.
    pub(crate) fn blank_token(&mut self, from: u32, token: u8) -> bool {
        let at = self.skip(from);
        let found = self.bytes(at, at.saturating_add(1)) == [token];
        if found {
            self.edits.blank(Span::new(at, at + 1));
        }
        found
    }

    /// Blanks the words of `words` among those from `from` to `to`, up to the first thing that is not a word. Returns
    /// the first part that was blanked.
    pub(crate) fn blank_words(&mut self, from: u32, to: u32, words: &[&str]) -> Option<Span> {
        let mut at = self.skip(from);
        let mut first = None;
        while at < to {
            let end = u32::try_from(trivia::word_end(self.source.as_bytes(), at as usize)).unwrap_or(to);
            if end == at {
                break;
            }
            if words.iter().any(|word| word.as_bytes() == self.bytes(at, end)) {
                let span = Span::new(at, end);
                self.edits.blank(span);
                first = first.or(Some(span));
            }
            at = self.skip(end);
        }
        first
    }

    /// Takes something out of a list with commas, together with the comma after it.
    pub(crate) fn blank_list_item(&mut self, span: Span) {
        self.edits.blank(span);
        self.blank_token(span.end, b',');
    }
}

impl<'a> Visit<'a> for Eraser<'_, 'a> {
    fn visit_statements(&mut self, statements: &ArenaVec<'a, Statement<'a>>) {
        self.statements(statements);
    }

    fn visit_statement(&mut self, statement: &Statement<'a>) {
        self.single_statement(statement);
    }

    fn visit_function_body(&mut self, body: &FunctionBody<'a>) {
        self.at_function_level = true;
        walk::walk_function_body(self, body);
    }

    fn visit_expression_statement(&mut self, statement: &ExpressionStatement<'a>) {
        self.keep_statement_form(&statement.expression);
        walk::walk_expression_statement(self, statement);
    }

    fn visit_return_statement(&mut self, statement: &ReturnStatement<'a>) {
        if let Some(argument) = &statement.argument {
            self.keep_on_line(argument);
        }
        walk::walk_return_statement(self, statement);
    }

    fn visit_throw_statement(&mut self, statement: &ThrowStatement<'a>) {
        self.keep_on_line(&statement.argument);
        walk::walk_throw_statement(self, statement);
    }

    fn visit_yield_expression(&mut self, expression: &YieldExpression<'a>) {
        if let Some(argument) = &expression.argument {
            self.keep_on_line(argument);
        }
        walk::walk_yield_expression(self, expression);
    }

    fn visit_variable_declarator(&mut self, declarator: &VariableDeclarator<'a>) {
        if declarator.definite {
            self.blank_token(declarator.id.span().end, b'!');
        }
        walk::walk_variable_declarator(self, declarator);
    }

    fn visit_expression(&mut self, expression: &Expression<'a>) {
        self.expression(expression);
    }

    fn visit_ts_as_expression(&mut self, it: &TSAsExpression<'a>) {
        self.blank_after(&it.expression, it.span);
        self.visit_expression(&it.expression);
    }

    fn visit_ts_satisfies_expression(&mut self, it: &TSSatisfiesExpression<'a>) {
        self.blank_after(&it.expression, it.span);
        self.visit_expression(&it.expression);
    }

    fn visit_ts_non_null_expression(&mut self, it: &TSNonNullExpression<'a>) {
        self.edits.blank(Span::new(it.span.end.saturating_sub(1), it.span.end));
        self.visit_expression(&it.expression);
    }

    fn visit_ts_type_assertion(&mut self, it: &TSTypeAssertion<'a>) {
        self.blank_assertion(it);
        self.visit_expression(&it.expression);
    }

    fn visit_arrow_function_expression(&mut self, arrow: &ArrowFunctionExpression<'a>) {
        walk::walk_arrow_function_expression(self, arrow);
        self.arrow(arrow);
    }

    fn visit_formal_parameter(&mut self, parameter: &FormalParameter<'a>) {
        self.parameter(parameter);
        walk::walk_formal_parameter(self, parameter);
    }

    fn visit_ts_this_parameter(&mut self, parameter: &TSThisParameter<'a>) {
        self.blank_list_item(parameter.span);
    }

    fn visit_ts_type_annotation(&mut self, annotation: &TSTypeAnnotation<'a>) {
        self.edits.blank(annotation.span);
    }

    fn visit_ts_type_parameter_declaration(&mut self, parameters: &TSTypeParameterDeclaration<'a>) {
        self.edits.blank(parameters.span);
    }

    fn visit_ts_type_parameter_instantiation(&mut self, arguments: &TSTypeParameterInstantiation<'a>) {
        self.edits.blank(arguments.span);
    }

    fn visit_decorator(&mut self, decorator: &Decorator<'a>) {
        self.refuse(
            decorator.span,
            "decorators are not supported; call the function on the class or on the method after the class",
        );
    }

    fn visit_class(&mut self, class: &Class<'a>) {
        self.class(class);
    }

    fn visit_ts_enum_declaration(&mut self, declaration: &TSEnumDeclaration<'a>) {
        self.enum_declaration(declaration, None);
    }

    fn visit_object_property(&mut self, property: &ObjectProperty<'a>) {
        if property.shorthand {
            self.shorthand(property);
        }
        walk::walk_object_property(self, property);
    }

    fn visit_identifier_reference(&mut self, identifier: &IdentifierReference<'a>) {
        self.reference(identifier);
    }

    fn visit_import_declaration(&mut self, declaration: &ImportDeclaration<'a>) {
        if declaration.import_kind == ImportOrExportKind::Value {
            self.refuse_in_script(declaration.span);
        }
        if self.is_loose() && declaration.specifiers.is_none() {
            self.refuse_module(declaration.span, declaration.source.value.as_str());
        }
    }

    fn visit_export_declaration(&mut self, export: &ExportDeclaration<'a>) {
        self.refuse_in_script(export.span);
        if self.is_loose() {
            self.edits.blank(Span::new(export.span.start, export.declaration.span().start));
            self.visit_declaration(&export.declaration);
            return;
        }
        match &export.declaration {
            Declaration::TSEnumDeclaration(declaration) => self.enum_declaration(declaration, Some(export.span)),
            declaration => self.visit_declaration(declaration),
        }
    }

    fn visit_export_named_declaration(&mut self, export: &ExportNamedDeclaration<'a>) {
        self.refuse_in_script(export.span);
        if self.is_loose() {
            self.edits.blank(export.span);
            self.edits.separate(export.span, export.span.end, false);
            return;
        }
        self.export_names(&export.specifiers);
    }

    fn visit_export_from_declaration(&mut self, export: &ExportFromDeclaration<'a>) {
        self.refuse_in_script(export.span);
        if self.is_loose() {
            self.refuse_module(export.span, export.source.value.as_str());
        }
        self.export_names_from(&export.specifiers);
    }

    fn visit_export_all_declaration(&mut self, export: &ExportAllDeclaration<'a>) {
        self.refuse_in_script(export.span);
        if self.is_loose() {
            self.refuse_module(export.span, export.source.value.as_str());
        }
    }

    fn visit_export_default_declaration(&mut self, export: &ExportDefaultDeclaration<'a>) {
        self.refuse_in_script(export.span);
        if let Some(expression) = export.declaration.as_expression() {
            self.keep_statement_form(expression);
        }
        walk::walk_export_default_declaration(self, export);
    }

    fn visit_ts_export_assignment(&mut self, export: &TSExportAssignment<'a>) {
        self.refuse(export.span, "`export =` is not supported; write `export default`");
    }

    fn visit_reg_exp_literal(&mut self, pattern: &RegExpLiteral<'a>) {
        self.patterns.push(pattern.span.start as usize..pattern.span.end as usize);
    }

    fn visit_import_expression(&mut self, import: &ImportExpression<'a>) {
        if self.is_loose() && import.phase.is_none() {
            // The engine's own says nothing of the place.
            self.edits.insert(import.span.start, "__");
        }
        walk::walk_import_expression(self, import);
    }

    fn visit_ts_import_equals_declaration(&mut self, import: &TSImportEqualsDeclaration<'a>) {
        if self.is_loose() {
            match &import.module_reference {
                TSModuleReference::ExternalModuleReference(module) => {
                    self.refuse_module(import.span, module.expression.value.as_str());
                }
                _ => self.refuse(
                    import.span,
                    format!("`import … =` is not supported; write `const {} = …`", import.id.name),
                ),
            }
            return;
        }
        self.refuse(
            import.span,
            "`import … =` is not supported; write `import … from \"…\"`, or `const … = …` for a part of a namespace",
        );
    }

    fn visit_ts_namespace_declaration(&mut self, namespace: &TSNamespaceDeclaration<'a>) {
        self.refuse(
            namespace.span,
            "a namespace with values is not supported; write `const Name = { … }` with what it exports as the object's \
             properties",
        );
    }
}
