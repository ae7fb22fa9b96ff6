// The parts of Pi's library for models that extensions call. Models themselves are asked through `atoll.complete`.
import { not_here } from "atoll:native";
export { Type } from "atoll:typebox";

export const StringEnum = (values, options = {}) => ({ type: "string", enum: [...values], ...options });
export const complete = not_here("complete of pi-ai");
export const completeSimple = not_here("completeSimple of pi-ai");
export const stream = not_here("stream of pi-ai");
export const streamSimple = not_here("streamSimple of pi-ai");
export const getModel = not_here("getModel of pi-ai");
export const getModels = not_here("getModels of pi-ai");
export const getProviders = not_here("getProviders of pi-ai");
export const getEnvApiKey = () => undefined;
export const isContextOverflow = () => false;
export const validateToolArguments = (_, call) => call.arguments;
