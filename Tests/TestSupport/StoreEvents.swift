package import Larder

/// The events that an observer of a store has received.
package final class StoreEvents: Sendable {
  private let events = Locked<[StoreEvent]>([])

  package init() {}

  /// Observes a range of a store.
  package func observe(_ store: some ObservableStore, _ range: KeyRange = .all) -> StoreObservation {
    store.observe(range) { self.add($0) }
  }

  /// Adds an event, as an observer with a closure of its own does.
  package func add(_ event: StoreEvent) {
    events.withLock { $0.append(event) }
  }

  /// Returns the events since the last call.
  package func take() -> [StoreEvent] {
    events.withLock { events in
      defer { events = [] }
      return events
    }
  }
}
