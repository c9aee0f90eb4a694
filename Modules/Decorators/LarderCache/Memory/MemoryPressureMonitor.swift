// A source may be used from any thread, but Dispatch does not declare it so.
@preconcurrency import Dispatch
import Larder

/// The degree to which the system is short of memory.
enum MemoryPressure: Int, Comparable, Sendable {
  case none
  /// Programs have to wait for memory now and then.
  case warning
  /// All programs are stalled for lack of memory, or will be soon.
  case critical

  static func < (left: MemoryPressure, right: MemoryPressure) -> Bool {
    left.rawValue < right.rawValue
  }
}

/// Reports memory pressure to its observers.
///
/// It has a source only while there are observers.
final class MemoryPressureMonitor: Sendable {
  typealias Handler = @Sendable (MemoryPressure) -> Void

  /// A closure that makes a source call a handler with the pressure, and returns a closure that ends this, or `nil` if
  /// the system reports no pressure.
  typealias Source = @Sendable (@escaping Handler) -> (@Sendable () -> Void)?

  private struct Observer: Sendable {
    weak let object: (any AnyObject & Sendable)?
    let handler: Handler
  }

  private struct State {
    var observers: [Observer] = []
    var cancel: (@Sendable () -> Void)?
  }

  /// The monitor of the system's memory pressure.
  static let ofSystem = MemoryPressureMonitor { systemMemoryPressure(handler: $0) }

  private let state = Locked(State())
  private let source: Source

  /// Creates a monitor.
  ///
  /// - Parameter source: The source of the pressure.
  init(source: @escaping Source) {
    self.source = source
  }

  /// Adds an observer.
  ///
  /// - Parameters:
  ///   - object: The object until whose release the handler is called.
  ///   - handler: A closure that is called with the pressure, on a thread of the monitor.
  func add(_ object: some AnyObject & Sendable, handler: @escaping Handler) {
    state.withLock { state in
      state.observers.removeAll { $0.object == nil }
      state.observers.append(Observer(object: object, handler: handler))
      if state.cancel == nil {
        state.cancel = source { [weak self] in self?.report($0) }
      }
    }
  }

  private func report(_ pressure: MemoryPressure) {
    let (observers, cancel) = state.withLock { state in
      state.observers.removeAll { $0.object == nil }
      guard state.observers.isEmpty else { return (state.observers, nil as (@Sendable () -> Void)?) }
      defer { state.cancel = nil }
      return ([], state.cancel)
    }
    cancel?()
    guard pressure > .none else { return }
    for observer in observers { observer.handler(pressure) }
  }
}

#if canImport(Darwin)

/// Reports the memory pressure of Apple systems.
func systemMemoryPressure(handler: @escaping MemoryPressureMonitor.Handler) -> (@Sendable () -> Void)? {
  let source = DispatchSource.makeMemoryPressureSource(eventMask: [.warning, .critical], queue: .global(qos: .utility))
  source.setEventHandler { handler(source.data.contains(.critical) ? .critical : .warning) }
  source.activate()
  return { source.cancel() }
}

#else

/// Reports the memory pressure of Linux.
///
/// It has to be polled.
///
/// - Parameters:
///   - file: The file that reports pressure. Defaults to that of this process.
///   - interval: The time between two polls, in seconds. Defaults to two.
///   - handler: A closure that is called with the pressure after each poll.
/// - Returns: A closure that ends the polling, or `nil` if the system reports no pressure.
func systemMemoryPressure(
  file: PressureFile? = PressureFile(), interval: Double = 2, handler: @escaping MemoryPressureMonitor.Handler
) -> (@Sendable () -> Void)? {
  guard let file else { return nil }
  let time = ElapsedTime(by: ContinuousClock())
  let gauge = Locked(PressureGauge())
  let timer = DispatchSource.makeTimerSource(queue: .global(qos: .utility))
  timer.schedule(deadline: .now(), repeating: interval, leeway: .milliseconds(Int(interval * 500)))
  timer.setEventHandler {
    let stall = file.stall
    handler(gauge.withLock { $0.pressure(of: stall, at: time.duration) })
  }
  timer.activate()
  return { timer.cancel() }
}

#endif
