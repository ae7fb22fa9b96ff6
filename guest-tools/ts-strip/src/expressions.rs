//! Expressions, parameters and arrow functions.

use oxc_ast::ast::*;
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan, Span};

use crate::erase::Eraser;
use crate::trivia;

impl<'a> Eraser<'_, 'a> {
    /// Walks an expression. Chains that grow to the left (`a + b + c`, `a.b().c`) nest in the tree as often as they are
    /// long, and the nesting of the source does not bound them; so the walk goes down them in a loop.
    pub(crate) fn expression(&mut self, expression: &Expression<'a>) {
        let mut aside: Vec<&Expression<'a>> = Vec::new();
        let mut current = expression;
        loop {
            current = match current {
                Expression::BinaryExpression(it) => {
                    self.refuse_regrouping(it);
                    aside.push(&it.right);
                    &it.left
                }
                Expression::LogicalExpression(it) => {
                    aside.push(&it.right);
                    &it.left
                }
                Expression::TSAsExpression(it) => {
                    self.blank_after(&it.expression, it.span);
                    &it.expression
                }
                Expression::TSSatisfiesExpression(it) => {
                    self.blank_after(&it.expression, it.span);
                    &it.expression
                }
                Expression::TSInstantiationExpression(it) => {
                    self.edits.blank(it.type_arguments.span);
                    &it.expression
                }
                Expression::TSNonNullExpression(it) => self.non_null(it),
                Expression::TaggedTemplateExpression(it) => {
                    if let Some(arguments) = &it.type_arguments {
                        self.edits.blank(arguments.span);
                    }
                    aside.extend(&it.quasi.expressions);
                    &it.tag
                }
                Expression::CallExpression(it) => self.call(it, &mut aside),
                Expression::StaticMemberExpression(it) => &it.object,
                Expression::PrivateFieldExpression(it) => &it.object,
                Expression::ComputedMemberExpression(it) => {
                    aside.push(&it.expression);
                    &it.object
                }
                Expression::ChainExpression(it) => match &it.expression {
                    ChainElement::CallExpression(it) => self.call(it, &mut aside),
                    ChainElement::TSNonNullExpression(it) => self.non_null(it),
                    ChainElement::StaticMemberExpression(it) => &it.object,
                    ChainElement::PrivateFieldExpression(it) => &it.object,
                    ChainElement::ComputedMemberExpression(it) => {
                        aside.push(&it.expression);
                        &it.object
                    }
                },
                other => {
                    walk::walk_expression(self, other);
                    break;
                }
            };
        }
        for expression in aside {
            self.visit_expression(expression);
        }
    }

    fn non_null<'e>(&mut self, it: &'e TSNonNullExpression<'a>) -> &'e Expression<'a> {
        self.edits.blank(Span::new(it.span.end.saturating_sub(1), it.span.end));
        &it.expression
    }

    fn call<'e>(&mut self, it: &'e CallExpression<'a>, aside: &mut Vec<&'e Expression<'a>>) -> &'e Expression<'a> {
        if let Some(arguments) = &it.type_arguments {
            self.edits.blank(arguments.span);
        }
        for argument in &it.arguments {
            match argument {
                Argument::SpreadElement(spread) => aside.push(&spread.argument),
                argument => aside.extend(argument.as_expression()),
            }
        }
        &it.callee
    }

    /// Blanks what comes after `expression` in `span`: `as T` and `satisfies T`.
    pub(crate) fn blank_after(&mut self, expression: &Expression<'a>, span: Span) {
        let start = self.skip(expression.span().end);
        self.edits.blank(Span::new(start, span.end));
    }

    /// Blanks the `<T>` of `<T>x`.
    pub(crate) fn blank_assertion(&mut self, assertion: &TSTypeAssertion<'a>) {
        let close = self.skip(assertion.type_annotation.span().end);
        self.edits.blank(Span::new(assertion.span.start, close.saturating_add(1)));
    }

    /// `a + b as T * c` is `(a + b) * c` in TypeScript, and something else without the type.
    fn refuse_regrouping(&mut self, outer: &BinaryExpression<'a>) {
        let mut left = &outer.left;
        let mut typed = false;
        loop {
            left = match left {
                Expression::TSAsExpression(it) => &it.expression,
                Expression::TSSatisfiesExpression(it) => &it.expression,
                _ => break,
            };
            typed = true;
        }
        let inner = match left {
            Expression::BinaryExpression(inner) => strength(inner.operator),
            Expression::UnaryExpression(_) | Expression::AwaitExpression(_) => strength(BinaryOperator::Multiplication),
            _ => return,
        };
        if typed && strength(outer.operator) > inner {
            self.refuse(left.span(), "an operator after `as` binds tighter than one before it; put parentheses around");
        }
    }

    pub(crate) fn arrow(&mut self, arrow: &ArrowFunctionExpression<'a>) {
        // A line must not end before `=>`, nor between `return` or `async` and what belongs to it. So a parenthesis
        // takes the place of the first or last byte of the type.
        if let Some(parameters) = &arrow.type_parameters
            && trivia::has_newline(self.bytes(parameters.span.start, arrow.params.span.start))
        {
            self.edits.blank(parameters.span);
            self.edits.blank(Span::new(arrow.params.span.start, arrow.params.span.start + 1));
            self.edits.put(parameters.span.start, b'(');
        }
        if let Some(result) = &arrow.return_type
            && trivia::has_newline(self.bytes(arrow.params.span.end, result.span.end))
        {
            self.edits.blank(result.span);
            self.edits.blank(Span::new(arrow.params.span.end.saturating_sub(1), arrow.params.span.end));
            self.put_last(result.span, b')');
        }
        if let Some(expression) = arrow.body.as_expression() {
            self.keep_statement_form(expression);
        }
    }

    /// Puts a token over the last byte of a blanked part; a type may end with a character of several bytes.
    fn put_last(&mut self, span: Span, token: u8) {
        let text = self.bytes(span.start, span.end);
        match text.last() {
            Some(byte) if byte.is_ascii() => self.edits.put(span.end - 1, token),
            // It went away as a blank of as many bytes; a token and blanks take its place.
            _ => {
                let length = text.iter().rev().take_while(|byte| (0x80..0xC0).contains(*byte)).count() + 1;
                let first = span.end.saturating_sub(u32::try_from(length).unwrap_or(0));
                for at in first..span.end {
                    self.edits.put(at, b' ');
                }
                self.edits.put(span.end - 1, token);
            }
        }
    }

    pub(crate) fn parameter(&mut self, parameter: &FormalParameter<'a>) {
        self.blank_parameter_modifiers(parameter);
        if parameter.optional {
            self.blank_token(parameter.pattern.span().end, b'?');
        }
    }

    pub(crate) fn reference(&mut self, identifier: &IdentifierReference<'a>) {
        self.values_used.insert(identifier.name.as_str());
        if let Some(scope) = self.enum_scope_of(identifier.name.as_str()) {
            let text = format!("{scope}.");
            self.edits.insert(identifier.span.start, text);
        }
    }

    /// Gives `{ a }` the name that it loses if `a` is a member of an enum.
    pub(crate) fn shorthand(&mut self, property: &ObjectProperty<'a>) {
        if let Expression::Identifier(identifier) = &property.value
            && self.enum_scope_of(identifier.name.as_str()).is_some()
        {
            self.edits.insert(property.span.start, format!("{}: ", identifier.name));
        }
    }

    /// The enum around that has a member of this name.
    fn enum_scope_of(&self, name: &'a str) -> Option<&'a str> {
        self.enum_scopes.iter().rev().find(|scope| scope.members.contains(name)).map(|scope| scope.name)
    }
}

/// How tight an operator binds; more is tighter.
fn strength(operator: BinaryOperator) -> u8 {
    match operator {
        BinaryOperator::Exponential => 10,
        BinaryOperator::Multiplication | BinaryOperator::Division | BinaryOperator::Remainder => 9,
        BinaryOperator::Addition | BinaryOperator::Subtraction => 8,
        BinaryOperator::ShiftLeft | BinaryOperator::ShiftRight | BinaryOperator::ShiftRightZeroFill => 7,
        BinaryOperator::LessThan
        | BinaryOperator::LessEqualThan
        | BinaryOperator::GreaterThan
        | BinaryOperator::GreaterEqualThan
        | BinaryOperator::In
        | BinaryOperator::Instanceof => 6,
        BinaryOperator::Equality
        | BinaryOperator::Inequality
        | BinaryOperator::StrictEquality
        | BinaryOperator::StrictInequality => 5,
        BinaryOperator::BitwiseAnd => 4,
        BinaryOperator::BitwiseXOR => 3,
        BinaryOperator::BitwiseOR => 2,
    }
}
