import NIOHTTP1

/// A step of the demonstration: one request, or several at the same time.
struct Step: Sendable {
  /// Something that happens to the server.
  enum Event: Sendable {
    /// Time passes, in which stored responses become stale.
    case wait(Duration)
    /// The server answers 503 to everything.
    case failure
    /// The server is gone.
    case end
  }

  /// The request, for people.
  var title: String
  var method: HTTPMethod = .GET
  var path: String
  var fields: [String: String] = [:]

  /// The number of requests at the same time.
  var count = 1

  /// The event before the request.
  var event: Event?

  /// The ways in which the cache must answer, one for each request.
  var expected: [Outcome]

  /// The status code that the client must get.
  var status = 200

  static let all = [
    Step(title: "a report, which takes 400 ms", path: "/report", expected: [.stored]),
    Step(title: "the report again", path: "/report", expected: [.reused]),
    Step(
      // The client has at most 8 connections.
      title: "8 clients at the same time", path: "/slow", count: 8,
      expected: [.stored] + Array(repeating: .collapsed, count: 7)),
    Step(title: "a page in German", path: "/page", fields: ["Accept-Language": "de"], expected: [.stored]),
    Step(title: "the page in English", path: "/page", fields: ["Accept-Language": "en"], expected: [.stored]),
    Step(title: "the page in German again", path: "/page", fields: ["Accept-Language": "de"], expected: [.reused]),
    Step(
      title: "the first 500 kB of a film", path: "/film", fields: ["Range": "bytes=0-499999"], expected: [.stored],
      status: 206),
    Step(
      title: "100 kB within them", path: "/film", fields: ["Range": "bytes=200000-299999"], expected: [.reused],
      status: 206),
    Step(title: "the whole film", path: "/film", expected: [.completed]),
    Step(title: "a private account", path: "/account", expected: [.passedOn]),
    Step(title: "a user", path: "/user", expected: [.stored]),
    Step(title: "a change of the user", method: .POST, path: "/user", expected: [.passedOn], status: 204),
    Step(title: "the user after the change", path: "/user", expected: [.stored]),
    Step(title: "prices, fresh for 1 s", path: "/prices", expected: [.stored]),
    Step(title: "news, fresh for 1 s", path: "/news", expected: [.stored]),
    Step(title: "a shop, fresh for 1 s", path: "/shop", expected: [.stored]),
    Step(title: "stale prices", path: "/prices", event: .wait(.seconds(2.5)), expected: [.validated]),
    Step(title: "stale news", path: "/news", expected: [.stale]),
    Step(title: "the shop, which is down", path: "/shop", event: .failure, expected: [.stale]),
    Step(title: "the shop, which is gone", path: "/shop", event: .end, expected: [.stale]),
    Step(title: "the report without a server", path: "/report", expected: [.reused]),
  ]
}
