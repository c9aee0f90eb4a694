/// The events of one request, oldest first.
struct EventBatch: Codable, Sendable, Equatable {
  var events: [Event]
}
