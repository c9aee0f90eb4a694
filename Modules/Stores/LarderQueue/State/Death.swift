/// Why and when an item became a dead letter.
struct Death: Sendable, Hashable {
  var reason: DeathReason
  /// In microseconds since 1970.
  var time: Int64
}
