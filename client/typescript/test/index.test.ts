/** All tests in one process, for they share a server. */
import "./server.js";
import "./calls.js";
import "./identifiers.js";
import "./streams.js";
import "./failures.js";
import "./generated.js";
import "./package.js";
