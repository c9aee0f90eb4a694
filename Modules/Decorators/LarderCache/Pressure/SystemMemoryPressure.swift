// A source may be used from any thread, but Dispatch does not declare it so.
@preconcurrency import Dispatch
import Synchronization

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
  ///   - file: The file that tells; the one that tells of this process unless given.
  ///   - interval: How many seconds to wait in between; two unless given.
  ///   - handler: What is told, each time.
  /// - Returns: `nil` where the system does not tell.
  init?(
    file: PressureFile? = PressureFile(), interval: Double = 2, handler: @escaping MemoryPressureMonitor.Handler
  ) {
    guard let file else { return nil }
    let start = ContinuousClock.now
    let gauge = Mutex(PressureGauge())
    timer = DispatchSource.makeTimerSource(queue: .global(qos: .utility))
    timer.schedule(deadline: .now(), repeating: interval, leeway: .milliseconds(Int(interval * 500)))
    timer.setEventHandler {
      let stall = file.stall
      handler(gauge.withLock { $0.pressure(of: stall, at: start.duration(to: .now)) })
    }
    timer.activate()
  }

  func cancel() {
    timer.cancel()
  }
}

#endif
