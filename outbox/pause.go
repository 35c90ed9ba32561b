package outbox

// Any is the wildcard of a pause; no name may be it.
const Any = "*"
