//! Numbers in arguments.

use atoll_plugin::Error;

/// A whole number of at least `least` from the argument `name`. JSON Schema's `integer` also admits `1.0`, so
/// arguments are read as floating-point numbers. Fails with `invalid-arguments`.
pub fn whole_number(name: &str, value: Option<f64>, least: u32) -> Result<Option<usize>, Error> {
    let Some(number) = value else { return Ok(None) };
    // Beyond this, neighbouring whole numbers can not be told apart.
    const LARGEST: f64 = 9_007_199_254_740_992.0;
    if number.fract() != 0.0 || number < f64::from(least) || number > LARGEST {
        return Err(Error::invalid_arguments(format!(
            "{name} must be a whole number, {least} or more; it is {number}."
        )));
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above; a cast saturates")]
    Ok(Some(number as usize))
}

/// A number from an argument as a whole one of at least `least`, whatever was asked for.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
pub fn at_least(number: f64, least: usize) -> usize {
    (number as usize).max(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_bounded() {
        let cases = [(5.0, 1, 5), (0.0, 1, 1), (-3.0, 0, 0), (2.5, 0, 2), (f64::NAN, 1, 1), (1e300, 1, usize::MAX)];
        for (number, least, expected) in cases {
            assert_eq!(at_least(number, least), expected, "{number}");
        }
    }

    #[test]
    fn takes_whole_numbers_only() {
        assert_eq!(whole_number("limit", None, 1).ok(), Some(None));
        assert_eq!(whole_number("limit", Some(3.0), 1).ok(), Some(Some(3)));
        assert_eq!(whole_number("offset", Some(0.0), 0).ok(), Some(Some(0)));
        for bad in [0.0, -1.0, 1.5, f64::NAN, f64::INFINITY, 1e300] {
            let error = whole_number("limit", Some(bad), 1).expect_err("must be refused");
            assert_eq!(error.code(), "invalid-arguments");
        }
    }
}
