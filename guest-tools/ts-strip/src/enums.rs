//! Enums: the object that TypeScript makes of one, written where the enum is, each member on its own line.

use std::collections::{BTreeMap, BTreeSet};

use oxc_ast::ast::*;
use oxc_ast_visit::Visit;
use oxc_span::{GetSpan, Span};

use crate::erase::Eraser;

/// The names that are members of an enum within its initialisers.
pub(crate) struct EnumScope<'a> {
    pub(crate) name: &'a str,
    pub(crate) members: BTreeSet<String>,
}

/// What is known of the value of a member before the program runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value {
    Number(f64),
    /// A string; which one does not matter here.
    Text,
}

impl<'a> Eraser<'_, 'a> {
    /// Writes an enum. `export` is the whole declaration it is exported by.
    pub(crate) fn enum_declaration(&mut self, declaration: &TSEnumDeclaration<'a>, export: Option<Span>) {
        let name = declaration.id.name.as_str();
        let head = Span::new(declaration.span.start, declaration.body.span.start.saturating_add(1));
        let (first, keyword) = match self.lists.last_mut() {
            Some(list) => (list.enums.insert(name), if list.function_level { "var" } else { "let" }),
            None => (true, "var"),
        };
        if first {
            self.edits.replace(head, format!("{keyword} {name}; (function ({name}) {{"));
        } else {
            let start = export.map_or(head.start, |export| export.start);
            self.edits.replace(Span::new(start, head.end), format!(";(function ({name}) {{"));
        }

        let mut known = self.enum_values.remove(name).unwrap_or_default();
        let mut members = self.enum_members.remove(name).unwrap_or_default();
        members.extend(declaration.body.members.iter().map(|member| member.id.static_name().to_string()));
        self.enum_scopes.push(EnumScope { name, members });
        let mut previous = Some(Value::Number(-1.0));
        for member in &declaration.body.members {
            let key = member.id.static_name().to_string();
            previous = self.member(name, member, previous, &known);
            match previous {
                Some(value) => known.insert(key, value),
                None => known.remove(&key),
            };
        }
        if let Some(scope) = self.enum_scopes.pop() {
            self.enum_members.insert(name, scope.members);
        }
        self.enum_values.insert(name, known);

        let end = declaration.body.span.end;
        self.edits.replace(Span::new(end.saturating_sub(1), end), format!("}})({name} || ({name} = {{}}));"));
    }

    /// Writes a member, and returns what is known of its value.
    fn member(
        &mut self,
        name: &'a str,
        member: &TSEnumMember<'a>,
        previous: Option<Value>,
        known: &BTreeMap<String, Value>,
    ) -> Option<Value> {
        let key = match &member.id {
            TSEnumMemberName::Identifier(id) => format!("\"{}\"", id.name),
            other => String::from_utf8_lossy(self.bytes(other.span().start, other.span().end)).into_owned(),
        };
        let value;
        match &member.initializer {
            Some(initializer) => {
                value = self.evaluate(initializer, name, known);
                let span = initializer.span();
                let head = Span::new(member.span.start, span.start);
                self.visit_expression(initializer);
                if value == Some(Value::Text) {
                    self.edits.replace(head, format!("{name}[{key}] = "));
                    self.edits.insert(span.end, ";");
                } else {
                    self.edits.replace(head, format!("{name}[{name}[{key}] = "));
                    self.edits.insert(span.end, format!("] = {key};"));
                }
            }
            None => {
                let Some(Value::Number(number)) = previous else {
                    self.refuse(
                        member.span,
                        "this member needs a value, because the one before it has no known number",
                    );
                    return None;
                };
                let number = number + 1.0;
                value = Some(Value::Number(number));
                let text = if number.is_nan() {
                    "NaN".to_owned()
                } else if number.is_infinite() {
                    if number > 0.0 { "Infinity".to_owned() } else { "-Infinity".to_owned() }
                } else {
                    number.to_string()
                };
                self.edits.replace(member.span, format!("{name}[{name}[{key}] = {text}] = {key};"));
            }
        }
        let comma = self.skip(member.span.end);
        if self.bytes(comma, comma.saturating_add(1)) == b"," {
            self.edits.replace(Span::new(comma, comma + 1), "");
        }
        value
    }

    /// What an initialiser is, as far as it can be told from the source alone.
    fn evaluate(&self, expression: &Expression<'a>, name: &'a str, known: &BTreeMap<String, Value>) -> Option<Value> {
        // Long sums nest to the left, as deep as they are long.
        let mut rights = Vec::new();
        let mut left = expression;
        while let Expression::BinaryExpression(it) = left {
            rights.push((it.operator, &it.right));
            left = &it.left;
        }
        let mut value = match left {
            Expression::NumericLiteral(it) => Some(Value::Number(it.value)),
            Expression::StringLiteral(_) | Expression::TemplateLiteral(_) => Some(Value::Text),
            Expression::ParenthesizedExpression(it) => self.evaluate(&it.expression, name, known),
            Expression::TSAsExpression(it) => self.evaluate(&it.expression, name, known),
            Expression::TSSatisfiesExpression(it) => self.evaluate(&it.expression, name, known),
            Expression::TSTypeAssertion(it) => self.evaluate(&it.expression, name, known),
            Expression::TSNonNullExpression(it) => self.evaluate(&it.expression, name, known),
            Expression::UnaryExpression(it) => match (it.operator, self.evaluate(&it.argument, name, known)?) {
                (UnaryOperator::UnaryPlus, Value::Number(number)) => Some(Value::Number(number)),
                (UnaryOperator::UnaryNegation, Value::Number(number)) => Some(Value::Number(-number)),
                (UnaryOperator::BitwiseNot, Value::Number(number)) => Some(Value::Number(f64::from(!to_int32(number)))),
                _ => None,
            },
            Expression::Identifier(it) => match known.get(it.name.as_str()) {
                Some(value) => Some(*value),
                None if it.name == "Infinity" => Some(Value::Number(f64::INFINITY)),
                None if it.name == "NaN" => Some(Value::Number(f64::NAN)),
                None => None,
            },
            Expression::StaticMemberExpression(it) => {
                self.member_of(&it.object, it.property.name.as_str(), name, known)
            }
            Expression::ComputedMemberExpression(it) => match &it.expression {
                Expression::StringLiteral(key) => self.member_of(&it.object, key.value.as_str(), name, known),
                _ => None,
            },
            _ => None,
        };
        while let Some((operator, right)) = rights.pop() {
            value = combine(value, operator, self.evaluate(right, name, known));
        }
        value
    }

    fn member_of(
        &self,
        object: &Expression<'a>,
        key: &str,
        name: &'a str,
        known: &BTreeMap<String, Value>,
    ) -> Option<Value> {
        let Expression::Identifier(object) = object else { return None };
        let members = if object.name == name { known } else { self.enum_values.get(object.name.as_str())? };
        members.get(key).copied()
    }
}

fn combine(left: Option<Value>, operator: BinaryOperator, right: Option<Value>) -> Option<Value> {
    use BinaryOperator as Op;
    let (left, right) = match (left, right) {
        (Some(Value::Text), _) | (_, Some(Value::Text)) if operator == Op::Addition => return Some(Value::Text),
        (Some(Value::Number(left)), Some(Value::Number(right))) => (left, right),
        _ => return None,
    };
    let shift = to_int32(right).cast_unsigned() & 31;
    Some(Value::Number(match operator {
        Op::Addition => left + right,
        Op::Subtraction => left - right,
        Op::Multiplication => left * right,
        Op::Division => left / right,
        Op::Remainder => left % right,
        Op::Exponential => left.powf(right),
        Op::ShiftLeft => f64::from(to_int32(left).wrapping_shl(shift)),
        Op::ShiftRight => f64::from(to_int32(left).wrapping_shr(shift)),
        Op::ShiftRightZeroFill => f64::from(to_int32(left).cast_unsigned().wrapping_shr(shift)),
        Op::BitwiseOR => f64::from(to_int32(left) | to_int32(right)),
        Op::BitwiseXOR => f64::from(to_int32(left) ^ to_int32(right)),
        Op::BitwiseAnd => f64::from(to_int32(left) & to_int32(right)),
        _ => return None,
    }))
}

/// A number as the bitwise operators of JavaScript take it: modulo 2³².
fn to_int32(number: f64) -> i32 {
    if !number.is_finite() {
        return 0;
    }
    let modulo = number.trunc().rem_euclid(4_294_967_296.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a whole number below 2³²")]
    let bits = modulo as u32;
    bits.cast_signed()
}
