//! Imports and exports: which names are types.
//!
//! A name counts as used as a value if it is anywhere in the source, whichever scope it is in: an import may stay that
//! TypeScript would take out because a local variable has its name. It never goes away when it is needed.

use std::collections::BTreeSet;

use oxc_ast::ast::*;
use oxc_span::{GetSpan, Span};

use crate::erase::Eraser;
use crate::statements::namespace_is_erased;

impl<'a> Eraser<'_, 'a> {
    /// Finds the names at the top that are types and not values too.
    pub(crate) fn find_local_types(&mut self, body: &[Statement<'a>]) {
        let mut types = BTreeSet::new();
        let mut values = BTreeSet::new();
        for statement in body {
            let declaration = match statement {
                Statement::ImportDeclaration(import) => {
                    for specifier in import.specifiers.iter().flatten() {
                        let is_type = import.import_kind == ImportOrExportKind::Type || is_type_specifier(specifier);
                        if is_type { &mut types } else { &mut values }.insert(specifier.local().name.as_str());
                    }
                    continue;
                }
                Statement::ExportDeclaration(export) => &export.declaration,
                Statement::ExportDefaultDeclaration(export) => {
                    match &export.declaration {
                        ExportDefaultDeclarationKind::FunctionDeclaration(it) => {
                            values.extend(it.id.as_ref().map(|id| id.name.as_str()));
                        }
                        ExportDefaultDeclarationKind::ClassDeclaration(it) => {
                            values.extend(it.id.as_ref().map(|id| id.name.as_str()));
                        }
                        ExportDefaultDeclarationKind::TSInterfaceDeclaration(it) => {
                            types.insert(it.id.name.as_str());
                        }
                        _ => {}
                    }
                    continue;
                }
                statement => match statement.as_declaration() {
                    Some(declaration) => declaration,
                    None => continue,
                },
            };
            match declaration {
                Declaration::TSTypeAliasDeclaration(it) => {
                    types.insert(it.id.name.as_str());
                }
                Declaration::TSInterfaceDeclaration(it) => {
                    types.insert(it.id.name.as_str());
                }
                Declaration::TSNamespaceDeclaration(it) if namespace_is_erased(it) => {
                    types.insert(it.id.name.as_str());
                }
                Declaration::TSImportEqualsDeclaration(it) if it.import_kind == ImportOrExportKind::Type => {
                    types.insert(it.id.name.as_str());
                }
                Declaration::FunctionDeclaration(it) => values.extend(it.id.as_ref().map(|id| id.name.as_str())),
                Declaration::ClassDeclaration(it) => values.extend(it.id.as_ref().map(|id| id.name.as_str())),
                Declaration::TSEnumDeclaration(it) => {
                    values.insert(it.id.name.as_str());
                }
                Declaration::TSNamespaceDeclaration(it) => {
                    values.insert(it.id.name.as_str());
                }
                Declaration::VariableDeclaration(it) => {
                    for declarator in &it.declarations {
                        values.extend(declarator.id.get_binding_identifiers().iter().map(|id| id.name.as_str()));
                    }
                }
                _ => {}
            }
        }
        self.local_types = types.difference(&values).copied().collect();
    }

    /// Whether an export without `from` is one of a type.
    pub(crate) fn exports_type(&self, specifier: &ExportSpecifier<'a>) -> bool {
        specifier.export_kind == ImportOrExportKind::Type
            || matches!(&specifier.local, ModuleExportName::IdentifierReference(name)
                if self.local_types.contains(name.name.as_str()))
    }

    pub(crate) fn export_names(&mut self, specifiers: &[ExportSpecifier<'a>]) {
        for specifier in specifiers {
            if self.exports_type(specifier) {
                self.blank_list_item(specifier.span);
            } else if let ModuleExportName::IdentifierReference(name) = &specifier.local {
                self.values_used.insert(name.name.as_str());
            }
        }
    }

    pub(crate) fn export_names_from(&mut self, specifiers: &[ExportSpecifier<'a>]) {
        for specifier in specifiers {
            if specifier.export_kind == ImportOrExportKind::Type {
                self.blank_list_item(specifier.span);
            }
        }
    }

    /// Takes out the imports that no value needs. To be called when the whole source was walked.
    pub(crate) fn erase_unused_imports(&mut self, body: &[Statement<'a>]) {
        for statement in body {
            let Statement::ImportDeclaration(import) = statement else { continue };
            let Some(specifiers) = &import.specifiers else { continue };
            let stays = |specifier: &ImportDeclarationSpecifier<'a>| {
                !is_type_specifier(specifier) && self.values_used.contains(&specifier.local().name.as_str())
            };
            let (kept, gone): (Vec<_>, Vec<_>) = specifiers.iter().partition(|specifier| stays(specifier));
            if self.is_loose() && import.import_kind == ImportOrExportKind::Value && !kept.is_empty() {
                self.refuse_module(import.span, import.source.value.as_str());
            }
            if import.import_kind == ImportOrExportKind::Type || kept.is_empty() {
                self.edits.blank(import.span);
                self.edits.separate(import.span, import.span.end, false);
                continue;
            }
            let default_only =
                matches!(kept.as_slice(), [ImportDeclarationSpecifier::ImportDefaultSpecifier(_)]) && !gone.is_empty();
            if default_only {
                self.keep_default_import(kept.as_slice(), specifiers.last());
            } else {
                for specifier in gone {
                    self.blank_list_item(specifier.span());
                }
            }
        }
    }

    /// Blanks all of an import but its default name: `, * as b` or `, { b }`.
    fn keep_default_import(
        &mut self,
        kept: &[&ImportDeclarationSpecifier<'a>],
        last: Option<&ImportDeclarationSpecifier<'a>>,
    ) {
        let (Some(default), Some(last)) = (kept.first(), last) else { return };
        let start = self.skip(default.span().end);
        let mut end = last.span().end;
        if let ImportDeclarationSpecifier::ImportSpecifier(_) = last {
            let mut at = self.skip(end);
            if self.bytes(at, at.saturating_add(1)) == b"," {
                at = self.skip(at.saturating_add(1));
            }
            end = at.saturating_add(1);
        }
        self.edits.blank(Span::new(start, end));
    }
}

fn is_type_specifier(specifier: &ImportDeclarationSpecifier<'_>) -> bool {
    matches!(specifier, ImportDeclarationSpecifier::ImportSpecifier(it) if it.import_kind == ImportOrExportKind::Type)
}
