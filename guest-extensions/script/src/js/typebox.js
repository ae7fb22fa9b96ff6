// JSON Schema by functions, as TypeBox has them: what they give is the schema itself.
const OPTIONAL = Symbol("optional");
const with_options = (schema, options = {}) => ({ ...schema, ...options });

const object = (properties, options = {}) => {
  const required = Object.keys(properties).filter((name) => !properties[name][OPTIONAL]);
  return with_options({ type: "object", properties, ...(required.length > 0 ? { required } : {}) }, options);
};
const literal = (value, options) => with_options({ const: value, type: typeof value }, options);

export const Type = {
  String: (options) => with_options({ type: "string" }, options),
  Number: (options) => with_options({ type: "number" }, options),
  Integer: (options) => with_options({ type: "integer" }, options),
  Boolean: (options) => with_options({ type: "boolean" }, options),
  Null: (options) => with_options({ type: "null" }, options),
  Any: (options) => with_options({}, options),
  Unknown: (options) => with_options({}, options),
  Never: (options) => with_options({ not: {} }, options),
  Literal: literal,
  Array: (items, options) => with_options({ type: "array", items }, options),
  Tuple: (items, options) =>
    with_options({ type: "array", prefixItems: items, minItems: items.length, maxItems: items.length }, options),
  Object: object,
  Record: (_, values, options) => with_options({ type: "object", additionalProperties: values }, options),
  Union: (anyOf, options) => with_options({ anyOf }, options),
  Intersect: (allOf, options) => with_options({ allOf }, options),
  Enum: (values, options) => with_options({ anyOf: Object.values(values).map((value) => literal(value)) }, options),
  Optional: (schema) => ({ ...schema, [OPTIONAL]: true }),
  Readonly: (schema) => schema,
  Partial: (schema, options) => {
    const { required, ...rest } = schema;
    return with_options(rest, options);
  },
  Required: (schema, options) => with_options({ ...schema, required: Object.keys(schema.properties) }, options),
  Pick: (schema, names, options) =>
    object(Object.fromEntries(names.map((name) => [name, member(schema, name)])), options),
  Omit: (schema, names, options) => {
    const left = Object.keys(schema.properties).filter((name) => !names.includes(name));
    return object(Object.fromEntries(left.map((name) => [name, member(schema, name)])), options);
  },
  Unsafe: (schema = {}) => schema,
  Ref: (name, options) => with_options({ $ref: typeof name === "string" ? name : name.$id }, options),
};

const member = (schema, name) =>
  (schema.required ?? []).includes(name) ? schema.properties[name] : Type.Optional(schema.properties[name]);

export const Kind = Symbol("kind");
export default { Type };
