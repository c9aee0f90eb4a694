#if Postgres
public import Larder

extension PostgresDatabase {
  /// The clock of the server, which all hosts read alike, for a `StoreLimiter` in a ``PostgresStore``.
  ///
  /// ```swift
  /// let limiter = try StoreLimiter(store, key: "limits/mail", configuration: limits, time: database.serverClock)
  /// ```
  ///
  /// A reading takes one round trip, and throws the errors of a read. The server has no clock but its wall clock. If that is set
  /// forward, a limiter permits as many additional starts as passing time would, and leases end early. If it is set back, the
  /// limits hold. They also hold if the server answers slowly. If its answers take longer than the time for a whole burst, about one burst is
  /// permitted in the time of two answers.
  public var serverClock: SharedClock {
    SharedClock(spansHosts: true) { [handle] in
      let time = Statement("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8")
      let rows = try await handle.running(.clock) { try await handle.read(time, for: .clock) }
      guard let microseconds = rows.integer(0, 0) else {
        throw StoreError(.ioFailed, during: .clock, message: "the server returned no time")
      }
      // The origin is 1970 for every server.
      return ClockReading(origin: 0, nanoseconds: microseconds * 1000)
    }
  }
}
#endif
