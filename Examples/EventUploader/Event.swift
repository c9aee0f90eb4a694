import Foundation

/// Something that happened in an app.
struct Event: Codable, Sendable, Equatable {
  /// Which run of the client recorded it.
  var session: String

  /// Which task of the client did.
  var task: Int

  /// The how manieth of that task it is.
  var number: Int

  /// When it was.
  var date: Date

  /// What happened.
  var name: String

  /// What nobody else is called.
  var id: String { "\(session)/\(task)/\(number)" }

  /// What the events of a task have in common, which are recorded one after another.
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
