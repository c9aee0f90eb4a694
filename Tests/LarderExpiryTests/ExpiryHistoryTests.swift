import Foundation
import Larder
import LarderExpiry
import LarderTesting
import Testing

/// Random histories, compared with a model and checked for linearizability.
@Suite struct ExpiryHistoryTests {
  @Test func `concurrent operations are linearizable`() async throws {
    for (name, timeToLive) in [("never", TimeToLive.never), ("sliding", .sliding(.seconds(100)))] {
      let trial = HistoryTrial("ExpiringStore, \(name)") { _ in
        var plan = FaultPlan()
        plan.schedule(.yields(upTo: 3), probability: 1)
        for operation in [.value, .values, .entries, .apply, .update] as [StoreOperation] {
          plan.schedule(.error(.ioFailed), on: operation, probability: 0.05)
          plan.schedule(.error(.ioFailed, .after), on: operation, probability: 0.05)
        }
        let memory = MemoryStore<Expiring<Int>>()
        // Adds entries that expired long ago, with keys below those of the history, so that purges have work.
        let (zero, start) = (Date(timeIntervalSince1970: 0), Date(timeIntervalSince1970: 1000))
        try memory.apply(
          ChangeBatch((0..<50).map { .set(StoreKey("!\($0)"), Expiring($0, deadline: ExpiryDeadline(zero))) }))
        // The clock jitters, so that every other read moves a sliding deadline.
        let clock = ManualClock()
        return memory.faulty(plan: plan).expiring(timeToLive) {
          clock.advance(by: .seconds(1))
          return start + (Int(clock.now.offset.components.seconds).isMultiple(of: 2) ? 0 : 50)
        }
      }
      try await trial.runConcurrently(rounds: 60, seed: SeededGenerator.seedOfProcess, mayFail: true)
    }
  }

  private struct Entry {
    var value: Int
    var deadline: Duration?
    var window: Duration?
  }

  /// The expected content of the store after each step.
  private struct Model {
    var entries: [StoreKey: Entry] = [:]
    var now = Duration.zero

    mutating func dropExpired() {
      entries = entries.filter { $0.value.deadline.map { now < $0 } ?? true }
    }

    mutating func set(_ key: StoreKey, _ value: Int, _ timeToLive: TimeToLive) {
      switch timeToLive {
      case .never: entries[key] = Entry(value: value)
      case .after(let timeToLive): entries[key] = Entry(value: value, deadline: now + timeToLive)
      case .sliding(let window): entries[key] = Entry(value: value, deadline: now + window, window: window)
      case .until: entries[key] = nil
      }
    }

    mutating func read(_ key: StoreKey) -> Int? {
      guard let entry = entries[key] else { return nil }
      if let window = entry.window, let deadline = entry.deadline, deadline - now <= window - window / 10 {
        entries[key]?.deadline = now + window
      }
      return entry.value
    }
  }

  @Test func `random histories match the model`() async throws {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "ExpiryHistoryTests")
    let keys = (0..<12).map { StoreKey("k\($0)") }
    let expirations: [TimeToLive] = [
      .never, .after(.seconds(2)), .after(.seconds(10)), .sliding(.seconds(4)), .sliding(.seconds(20)),
      .until(.distantPast),
    ]
    for _ in 0..<40 {
      let clock = ManualClock()
      let standard = expirations.filter { $0 != .until(.distantPast) }.randomElement(using: &generator) ?? .never
      let store = MemoryStore<Expiring<Int>>().expiring(standard) { clock.date }
      var model = Model()
      for step in 0..<300 {
        let key = keys.randomElement(using: &generator) ?? "k0"
        let timeToLive = expirations.randomElement(using: &generator) ?? .never
        switch Int.random(in: 0..<12, using: &generator) {
        case 0, 1, 2:
          let time = Duration.milliseconds(Int.random(in: 0...2000, using: &generator))
          clock.advance(by: time)
          model.now += time
          model.dropExpired()
        case 3:
          try await store.setValue(step, forKey: key, timeToLive: timeToLive)
          model.set(key, step, timeToLive)
        case 4:
          try await store.setValue(step, forKey: key)
          model.set(key, step, standard)
        case 5:
          try await store.setValueKeepingDeadline(step, forKey: key)
          if model.entries[key] != nil {
            _ = model.read(key)
            model.entries[key]?.value = step
          } else {
            model.set(key, step, standard)
          }
        case 6:
          let isThere = try await store.touch(key, timeToLive: timeToLive)
          #expect(isThere == (model.entries[key] != nil))
          if let entry = model.entries[key] { model.set(key, entry.value, timeToLive) }
        case 7:
          try await store.removeValue(forKey: key)
          model.entries[key] = nil
        case 8:
          let found = try await store.update(key) { slot in
            defer { slot = (slot ?? 0) + 1 }
            return slot
          }
          #expect(found == model.entries[key]?.value)
          model.set(key, (model.entries[key]?.value ?? 0) + 1, standard)
        case 9:
          try await store.purgeExpired(limit: Int.random(in: 0...5, using: &generator))
        default:
          #expect(try await store[key] == model.read(key))
        }
        let live = keys.sorted().filter { model.entries[$0] != nil }
        #expect(
          try await store.keys(in: .all, limit: .max) == live, "seed \(SeededGenerator.seedOfProcess), step \(step)")
        #expect(
          try await store.remainingTime(forKey: key)
            == model.entries[key].map { entry in entry.deadline.map { .after($0 - model.now) } ?? .never },
          "seed \(SeededGenerator.seedOfProcess), step \(step)")
      }
    }
  }
}
