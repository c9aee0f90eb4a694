/// The observers of a queue's dead letters, for authors of a ``DurableQueue``.
///
/// A queue owns one list, passes ``DurableQueue/observeDeadLetters(_:)`` on to ``add(_:)``, and reports each item after the
/// change that made it a dead letter is written.
public final class DeadLetterObservers: Sendable {
  private struct State {
    var observers: [UInt64: @Sendable (DeadLetterEvent) -> Void] = [:]
    var lastNumber: UInt64 = 0
  }

  private let state = Locked(State())

  /// Creates an empty list.
  public init() {}

  /// Adds an observer.
  ///
  /// - Parameter observer: A closure that receives the reports.
  /// - Returns: The observation. It does not hold the list.
  public func add(_ observer: @escaping @Sendable (DeadLetterEvent) -> Void) -> StoreObservation {
    let number = state.withLock { state in
      state.lastNumber += 1
      state.observers[state.lastNumber] = observer
      return state.lastNumber
    }
    return StoreObservation { [weak self] in
      // Released outside the lock.
      _ = self?.state.withLock { $0.observers.removeValue(forKey: number) }
    }
  }

  /// Reports dead letters to all observers, in order.
  ///
  /// - Parameter deadLetters: The reports.
  public func report(_ deadLetters: [DeadLetterEvent]) {
    guard !deadLetters.isEmpty else { return }
    let observers = state.withLock { Array($0.observers.values) }
    for deadLetter in deadLetters {
      for observer in observers { observer(deadLetter) }
    }
  }
}
