/// Which deadlines a write gives.
struct DeadlineRule: Sendable {
  /// The expiration of what is new, or of everything.
  let expiration: Expiration

  /// Whether an entry that takes the place of a live one gets its deadline.
  let keepsDeadlines: Bool

  /// The deadline of a value that is written now; `nil` where it does not expire.
  ///
  /// - Parameters:
  ///   - previous: The live entry in whose place it comes, or `nil` where there is none.
  ///   - now: The time.
  func deadline<Value>(inPlaceOf previous: Expiring<Value>?, at now: WallTime) -> Deadline? {
    guard keepsDeadlines, let previous else { return expiration.deadline(from: now) }
    // One that slides moves on as by a read: the entry is being used.
    return previous.deadline?.moved(byReadAt: now) ?? previous.deadline
  }
}
