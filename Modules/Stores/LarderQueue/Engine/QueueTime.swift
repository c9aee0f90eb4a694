/// Tells the time to a queue: by the clock on the wall for what stands in the files, and by one that nobody sets for what
/// goes on in this process.
struct QueueTime: Sendable {
  /// The microseconds since 1970, by the clock on the wall.
  let wall: @Sendable () -> Int64
  /// The same when the queue was opened, and from then on by a clock that nobody sets.
  let steady: @Sendable () -> Int64

  /// - Parameters:
  ///   - clock: The one that nobody sets.
  ///   - wall: Tells the microseconds since 1970.
  init(clock: some Clock<Duration>, wall: @escaping @Sendable () -> Int64) {
    self.wall = wall
    let (start, opening) = (clock.now, wall())
    steady = { opening.addingSaturating(start.duration(to: clock.now).microseconds) }
  }

  /// How far the clock on the wall is ahead now, in microseconds.
  var offset: Int64 {
    let (offset, overflows) = wall().subtractingReportingOverflow(steady())
    return overflows ? 0 : offset
  }
}
