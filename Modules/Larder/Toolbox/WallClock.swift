/// The rule for times that a store records by the wall clock.
///
/// The clock can be wrong.
///
/// A stored deadline must not last longer because the clock was ahead when it was set. So a time that is recorded as the
/// beginning of a deadline, and lies more than a minute later than now, is that of a wrong clock. The deadline is then
/// counted from now, where it is stored. <doc:WallClocks> describes the rule and the corrections of each module.
public enum WallClock {
  /// The greatest difference between the clocks of hosts that share a store: one minute.
  public static let tolerance = Duration.seconds(60)

  /// Returns whether a recorded time is from a clock that was ahead.
  ///
  /// ```swift
  /// if WallClock.wasAhead(at: record.beginning, now: now) { record.end = now + record.duration }
  /// ```
  ///
  /// - Parameters:
  ///   - time: The time that was recorded, in microseconds since 1970.
  ///   - now: The current time, in microseconds since 1970.
  /// - Returns: A Boolean value that indicates whether the time lies more than ``tolerance`` later than now.
  public static func wasAhead(at time: Int64, now: Int64) -> Bool {
    time > now.addingSaturating(tolerance.wholeMicroseconds)
  }
}
