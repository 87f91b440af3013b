/** Licenses for installed programs: README.md is the guide. */
export { Program, type Check, type Options, type Store } from "./program.js";
export { Refused, type Reason, type Receipt } from "./documents.js";
export { ServiceError } from "./service.js";
