/// Counts of what a queue has done since it was opened.
struct QueueTallies: Sendable, Hashable {
  var enqueued = 0
  var delivered = 0
  /// The deliveries that were not the first of their items.
  var redelivered = 0
  var acknowledged = 0
  var released = 0
  var deadLettered = 0
  /// Dead letters that were removed since their time was over.
  var deadExpired = 0
  var dropped = 0
}
