// Types and values that the samples of doc comments use without declaring them. Scripts/check-samples type-checks them.
// Nothing here runs.

/// Returns a value of any type, for the type checker.
func standIn<Value>() -> Value { fatalError() }

struct User: Codable, Sendable, Equatable {
  var email: String?
  var name = ""
  var visits = 0
}

struct Session: Codable, Sendable, Equatable {
  var user = ""
}

struct Order: Codable, Sendable, Equatable {
  var number = 0
}

struct Note: Codable, Sendable, Equatable {
  var title = ""
  var folder = ""
  var slug = ""
  var tags: [String] = []
  var created = Date()
}

struct Event: Codable, Sendable, Equatable {
  var name = ""
}

struct Position: Codable, Sendable {}

struct Article: Codable, Sendable {}

struct Customer: Codable, Sendable {}

struct Job: Codable, Sendable {}

struct OrderPlaced: Codable, Sendable {
  var order = 0
}

struct Settings: Codable, Sendable, Equatable {
  var theme = ""
  var fontSize = 14
}

struct Report: Codable, Sendable {
  var hour = Date()
}

/// A destination of messages, such as a mail server.
struct Server: Sendable {
  func send(_ value: some Sendable) async throws {}
  func post(_ events: [Event]) async throws -> [Int: any Error] { standIn() }
  func page(id: String) async throws -> Page { standIn() }
  func user(id: String) async throws -> User { standIn() }
}

struct Page: Codable, Sendable {}

/// A logger with the methods of swift-log that samples call.
struct StandInLogger: Sendable {
  func info(_ text: String) {}
  func warning(_ text: String) {}
  func error(_ text: String) {}
}

var folder: String { standIn() }
var path: String { standIn() }
var seed: UInt64 { standIn() }
var user: User { standIn() }
var ada: User { standIn() }
var session: Session { standIn() }
var order: Order { standIn() }
var event: Event { standIn() }
var note: Note { standIn() }
var photo: [UInt8] { standIn() }
var customer: Customer { standIn() }
var position: Position { standIn() }
var server: Server { standIn() }
var smtp: Server { standIn() }
var isFirstStart: Bool { standIn() }
var logger: StandInLogger { standIn() }

func send(_ value: some Sendable) async throws {}

func migrate(_ database: some Any) async throws {}
func show(_ value: some Any) {}
