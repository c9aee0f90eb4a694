/// Tells how much time has passed on a clock, whose type need not be known.
struct Stopwatch: Sendable {
  private let measure: @Sendable () -> Duration

  /// Starts one.
  ///
  /// - Parameter clock: What measures.
  init(_ clock: some Clock<Duration>) {
    let start = clock.now
    measure = { start.duration(to: clock.now) }
  }

  /// How much time has passed since the start.
  var elapsed: Duration { measure() }
}
