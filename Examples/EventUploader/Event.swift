import Foundation

/// An event in an app.
struct Event: Codable, Sendable, Equatable {
  /// The run of the client that recorded the event.
  var session: String

  /// The task of the client that recorded it.
  var task: Int

  /// The number of the event within its task.
  var number: Int

  /// The time of the event.
  var date: Date

  /// The name of the event.
  var name: String

  /// A unique identifier.
  var id: String { "\(session)/\(task)/\(number)" }

  /// The common prefix of the identifiers of a task's events, which are recorded one after another.
  var source: String { "\(session)/\(task)" }

  private static let names = ["app opened", "item viewed", "item added", "order placed", "screen left"]

  init(session: String, task: Int, number: Int) {
    self.session = session
    self.task = task
    self.number = number
    date = .now
    name = Self.names[number % Self.names.count]
  }
}
