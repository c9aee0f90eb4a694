// A source may be used from any thread, but Dispatch does not declare it so.
@preconcurrency import Dispatch

#if canImport(Darwin)

/// Hears from the system of memory pressure.
final class SystemMemoryPressure: MemoryPressureSource {
  private let source: any DispatchSourceMemoryPressure

  /// Begins to listen.
  ///
  /// - Parameter handler: What is told.
  init?(handler: @escaping MemoryPressureMonitor.Handler) {
    source = DispatchSource.makeMemoryPressureSource(eventMask: [.warning, .critical], queue: .global(qos: .utility))
    source.setEventHandler { [source] in
      handler(source.data.contains(.critical) ? .critical : .warning)
    }
    source.activate()
  }

  func cancel() {
    source.cancel()
  }
}

#else

/// Asks Linux for memory pressure again and again, where it tells.
final class SystemMemoryPressure: MemoryPressureSource {
  private let timer: any DispatchSourceTimer

  /// Begins to ask.
  ///
  /// - Parameters:
  ///   - paths: Where to look for the file that tells; where the system tells, unless given.
  ///   - interval: How many seconds to wait in between. Two unless given: time enough for the average of ten seconds to
  ///     change, and for a trim to show in it.
  ///   - handler: What is told, each time.
  /// - Returns: `nil` where the system does not tell.
  init?(
    paths: [String] = PressureFile.paths(), interval: Double = 2,
    handler: @escaping MemoryPressureMonitor.Handler
  ) {
    guard let file = PressureFile(firstOf: paths) else { return nil }
    timer = DispatchSource.makeTimerSource(queue: .global(qos: .utility))
    timer.schedule(deadline: .now() + interval, repeating: interval, leeway: .milliseconds(Int(interval * 500)))
    timer.setEventHandler { handler(file.pressure) }
    timer.activate()
  }

  func cancel() {
    timer.cancel()
  }
}

#endif
