//! Classes: modifiers and members that are types, and constructor parameters that are fields.

use oxc_ast::ast::*;
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan, Span};

use crate::erase::Eraser;

const MODIFIERS: &[&str] = &["public", "private", "protected", "readonly", "override", "abstract", "declare"];

impl<'a> Eraser<'_, 'a> {
    pub(crate) fn class(&mut self, class: &Class<'a>) {
        self.visit_decorators(&class.decorators);
        if class.r#abstract {
            self.blank_words(class.span.start, class.span.start.saturating_add(1), &["abstract"]);
        }
        let mut head = class.id.as_ref().map_or(class.span.start, |id| id.span.end);
        if let Some(parameters) = &class.type_parameters {
            self.edits.blank(parameters.span);
            head = parameters.span.end;
        }
        if let Some(heritage) = &class.heritage {
            self.visit_class_heritage(heritage);
            head = heritage.expression.span().end;
            if let Some(arguments) = &heritage.type_arguments {
                head = arguments.span.end;
            }
        }
        if let (Some(first), Some(last)) = (class.implements.first(), class.implements.last()) {
            self.blank_words(head, first.span.start, &["implements"]);
            self.edits.blank(Span::new(first.span.start, last.span.end));
        }
        self.members(&class.body, class.heritage.is_some());
    }

    fn members(&mut self, body: &ClassBody<'a>, derived: bool) {
        let mut previous: Option<&ClassElement<'a>> = None;
        for member in &body.body {
            let span = member.span();
            if is_erased(member) {
                self.edits.blank(span);
                if previous.is_some_and(|previous| self.is_open(previous) && is_named_like_a_modifier(previous)) {
                    self.edits.put_semicolon(span);
                } else {
                    self.edits.separate(span, span.end, true);
                }
                continue;
            }
            if let Some(key) = key(member)
                && let Some(first) = self.blank_words(span.start, key.span().start, MODIFIERS)
                && previous.is_some_and(|previous| self.is_open(previous))
            {
                self.edits.separate(first, first.end, true);
            }
            self.blank_mark(member);
            if let ClassElement::MethodDefinition(method) = member
                && method.kind == MethodDefinitionKind::Constructor
            {
                self.parameter_properties(&method.value, derived, body.span.start.saturating_add(1));
            }
            walk::walk_class_element(self, member);
            if let Some(blank) = self.edits.blank_ending_at(span.end) {
                if is_named_like_a_modifier(member) {
                    self.edits.put_semicolon(blank);
                } else {
                    self.edits.separate(blank, span.end, true);
                }
            }
            previous = Some(member);
        }
    }

    /// Whether a field ends without `;`, so that what follows might go on with it.
    fn is_open(&self, member: &ClassElement<'a>) -> bool {
        let end = member.span().end;
        matches!(member, ClassElement::PropertyDefinition(_) | ClassElement::AccessorProperty(_))
            && self.bytes(end.saturating_sub(1), end) != b";"
    }

    /// Blanks the `?` or `!` after the name of a member.
    fn blank_mark(&mut self, member: &ClassElement<'a>) {
        let (key, computed, mark) = match member {
            ClassElement::MethodDefinition(it) if it.optional => (&it.key, it.computed, b'?'),
            ClassElement::PropertyDefinition(it) if it.optional => (&it.key, it.computed, b'?'),
            ClassElement::PropertyDefinition(it) if it.definite => (&it.key, it.computed, b'!'),
            ClassElement::AccessorProperty(it) if it.definite => (&it.key, it.computed, b'!'),
            _ => return,
        };
        let mut end = key.span().end;
        if computed {
            end = self.skip(end).saturating_add(1);
        }
        self.blank_token(end, mark);
    }

    /// Writes the fields and assignments that `constructor(private x: T)` stands for; the fields first of all at
    /// `fields_at`, so that they come before the others when they are listed, as with TypeScript.
    fn parameter_properties(&mut self, constructor: &Function<'a>, derived: bool, fields_at: u32) {
        let mut fields = String::new();
        let mut assignments = String::new();
        for parameter in &constructor.params.items {
            if parameter.accessibility.is_none() && !parameter.readonly && !parameter.r#override {
                continue;
            }
            let pattern = match &parameter.pattern {
                BindingPattern::AssignmentPattern(pattern) => &pattern.left,
                pattern => pattern,
            };
            match pattern {
                BindingPattern::BindingIdentifier(name) => {
                    fields.push_str(&format!(" {};", name.name));
                    assignments.push_str(&format!(" this.{0} = {0};", name.name));
                }
                other => {
                    self.refuse(
                        other.span(),
                        "a parameter that is a field has one name; assign the fields in the body",
                    );
                    return;
                }
            }
        }
        let Some(body) = &constructor.body else { return };
        if assignments.is_empty() {
            return;
        }
        let at = if derived {
            match body.statements.iter().find(|statement| is_super_call(statement)) {
                Some(statement) => statement.span().end,
                None => {
                    self.refuse(
                        constructor.params.span,
                        "a class with parameters that are fields calls `super(…)` in a statement of its own; do so, or \
                         assign the fields in the body",
                    );
                    return;
                }
            }
        } else {
            body.directives.last().map_or(body.span.start.saturating_add(1), |directive| directive.span.end)
        };
        let before = self.bytes(at.saturating_sub(1), at);
        let separator = if before == b";" || before == b"{" { "" } else { ";" };
        self.edits.insert(fields_at, fields);
        self.edits.insert(at, format!("{separator}{assignments}"));
    }

    /// Blanks the modifiers of a parameter that is a field.
    pub(crate) fn blank_parameter_modifiers(&mut self, parameter: &FormalParameter<'a>) {
        if parameter.accessibility.is_some() || parameter.readonly || parameter.r#override {
            self.blank_words(parameter.span.start, parameter.pattern.span().start, MODIFIERS);
        }
    }
}

fn is_super_call(statement: &Statement<'_>) -> bool {
    matches!(statement, Statement::ExpressionStatement(it)
        if matches!(&it.expression, Expression::CallExpression(call) if matches!(call.callee, Expression::Super(_))))
}

fn key<'m, 'a>(member: &'m ClassElement<'a>) -> Option<&'m PropertyKey<'a>> {
    match member {
        ClassElement::MethodDefinition(it) => Some(&it.key),
        ClassElement::PropertyDefinition(it) => Some(&it.key),
        ClassElement::AccessorProperty(it) => Some(&it.key),
        ClassElement::StaticBlock(_) | ClassElement::TSIndexSignature(_) => None,
    }
}

/// Whether a member has no meaning at run time.
fn is_erased(member: &ClassElement<'_>) -> bool {
    match member {
        ClassElement::MethodDefinition(it) => it.value.body.is_none(),
        ClassElement::PropertyDefinition(it) => {
            it.declare || it.r#type == PropertyDefinitionType::TSAbstractPropertyDefinition
        }
        ClassElement::AccessorProperty(it) => it.r#type == AccessorPropertyType::TSAbstractAccessorProperty,
        ClassElement::TSIndexSignature(_) => true,
        ClassElement::StaticBlock(_) => false,
    }
}

/// Whether a field without a value would be a modifier of the member after it, were there no `;` or type between them.
fn is_named_like_a_modifier(member: &ClassElement<'_>) -> bool {
    let ClassElement::PropertyDefinition(field) = member else { return false };
    field.value.is_none()
        && matches!(&field.key, PropertyKey::StaticIdentifier(name)
            if matches!(name.name.as_str(), "get" | "set" | "static" | "async" | "accessor"))
}
