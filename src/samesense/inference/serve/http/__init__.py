"""HTTP: routes, middleware, the formats of other servers, and the web page."""
