import Synchronization

/// Something that asks for memory pressure, again and again, until it is told to stop.
protocol MemoryPressureSource: Sendable {
  /// Stops.
  func cancel()
}

/// Stands for one who wants to know of memory pressure, for as long as it lives.
final class MemoryPressureObservation: Sendable {}

/// Tells all who ask of memory pressure.
///
/// It works only while there is someone to tell.
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

  /// The one that asks the system.
  static let ofSystem = MemoryPressureMonitor { SystemMemoryPressure(handler: $0) }

  private let state = Mutex(State())
  private let makeSource: @Sendable (@escaping Handler) -> (any MemoryPressureSource)?

  /// Makes a monitor.
  ///
  /// - Parameter makeSource: Makes what asks; it is to call the given handler until it is cancelled or released. `nil`
  ///   where there is nothing to ask.
  init(makeSource: @escaping @Sendable (@escaping Handler) -> (any MemoryPressureSource)?) {
    self.makeSource = makeSource
  }

  /// Adds one who is to be told.
  ///
  /// - Parameters:
  ///   - observation: For as long as this lives.
  ///   - handler: What is told, on a thread of the monitor's.
  func add(_ observation: MemoryPressureObservation, handler: @escaping Handler) {
    state.withLock { state in
      state.observers.removeAll { $0.observation == nil }
      state.observers.append(Observer(observation: observation, handler: handler))
      if state.source == nil {
        state.source = makeSource { [weak self] in self?.tell($0) }
      }
    }
  }

  private func tell(_ pressure: MemoryPressure) {
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
