// A source may be used from any thread, but Dispatch does not declare it so.
@preconcurrency import Dispatch
import Synchronization

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

/// A source of memory pressure, which reports it until it is cancelled.
protocol MemoryPressureSource: Sendable {
  /// Stops the reports.
  func cancel()
}

/// A token that keeps an observation of memory pressure alive.
final class MemoryPressureObservation: Sendable {}

/// Reports memory pressure to its observers.
///
/// It has a source only while there are observers.
final class MemoryPressureMonitor: Sendable {
  typealias Handler = @Sendable (MemoryPressure) -> Void

  private struct Observer: Sendable {
    weak let observation: MemoryPressureObservation?
    let handler: Handler
  }

  private struct State {
    var observers: [Observer] = []
    var source: (any MemoryPressureSource)?
  }

  /// The monitor of the system's memory pressure.
  static let ofSystem = MemoryPressureMonitor { SystemMemoryPressure(handler: $0) }

  private let state = Mutex(State())
  private let makeSource: @Sendable (@escaping Handler) -> (any MemoryPressureSource)?

  /// Creates a monitor.
  ///
  /// - Parameter makeSource: A closure that creates a source, which calls the given handler until it is cancelled or
  ///   released, or that returns `nil` if the system reports no pressure.
  init(makeSource: @escaping @Sendable (@escaping Handler) -> (any MemoryPressureSource)?) {
    self.makeSource = makeSource
  }

  /// Adds an observer.
  ///
  /// - Parameters:
  ///   - observation: The token that keeps the observation alive.
  ///   - handler: A closure that is called with the pressure, on a thread of the monitor.
  func add(_ observation: MemoryPressureObservation, handler: @escaping Handler) {
    state.withLock { state in
      state.observers.removeAll { $0.observation == nil }
      state.observers.append(Observer(observation: observation, handler: handler))
      if state.source == nil {
        state.source = makeSource { [weak self] in self?.report($0) }
      }
    }
  }

  private func report(_ pressure: MemoryPressure) {
    let (observers, idle) = state.withLock { state in
      state.observers.removeAll { $0.observation == nil }
      guard state.observers.isEmpty else { return (state.observers, nil as (any MemoryPressureSource)?) }
      defer { state.source = nil }
      return ([], state.source)
    }
    idle?.cancel()
    guard pressure > .none else { return }
    for observer in observers { observer.handler(pressure) }
  }
}

#if canImport(Darwin)

/// The source of memory pressure on Apple systems.
final class SystemMemoryPressure: MemoryPressureSource {
  private let source: any DispatchSourceMemoryPressure

  /// Starts to listen.
  ///
  /// - Parameter handler: A closure that is called with the pressure.
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

/// The source of memory pressure on Linux, which polls the system.
final class SystemMemoryPressure: MemoryPressureSource {
  private let timer: any DispatchSourceTimer

  /// Starts to poll.
  ///
  /// - Parameters:
  ///   - file: The file that reports pressure. Defaults to that of this process.
  ///   - interval: The time between two polls, in seconds. Defaults to two.
  ///   - handler: A closure that is called with the pressure after each poll.
  /// - Returns: `nil` if the system reports no pressure.
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
