#if Hummingbird
import Hummingbird
import LarderTesting

extension PersistDriverCaseList {
  /// Adds the cases with random calls.
  mutating func addHistoryCases() {
    add(20, "Random calls have the results of a model") { trial in
      var random = SeededGenerator(seed: trial.seed, purpose: "persist driver")
      for round in 0..<4 {
        try await trial.open(trial.location) { driver in
          var model = DriverModel(clock: trial.location.clock)
          for step in 0..<150 {
            let key = "\(round)-\(random.next() % 4)"
            try await model.take(random.next(), of: key, step: step, with: driver)
          }
        }
      }
    }
  }
}

/// The entries that a driver must have.
private struct DriverModel {
  let clock: ManualClock
  private var entries: [String: (value: Int, deadline: ManualClock.Instant?)] = [:]

  init(clock: ManualClock) {
    self.clock = clock
  }

  private func live(_ key: String) -> (value: Int, deadline: ManualClock.Instant?)? {
    entries[key].flatMap { entry in entry.deadline.map { clock.now >= $0 } ?? false ? nil : entry }
  }

  /// Takes a random step, and compares the result of the driver with that of the model.
  mutating func take(_ choice: UInt64, of key: String, step: Int, with driver: any PersistDriver) async throws {
    // Half seconds and whole ones, so that no call comes exactly at a deadline.
    let expires: Duration? = choice / 8 % 3 == 0 ? nil : .milliseconds(Int(choice / 32 % 8) * 1000 + 500)
    let deadline = expires.map { clock.now.advanced(by: $0) }
    let subject = "step \(step), key \(key)"
    switch choice % 8 {
    case 0, 1:
      clock.advance(by: .seconds(Int(choice / 32 % 4)))
    case 2:
      try await driver.remove(key: key)
      entries[key] = nil
    case 3:
      var isDuplicate = false
      do {
        try await driver.create(key: key, value: step, expires: expires)
      } catch let error as PersistError where error == .duplicate {
        isDuplicate = true
      }
      try expect("\(subject), whether create throws duplicate", isDuplicate, equals: live(key) != nil)
      if !isDuplicate { entries[key] = (step, deadline) }
    case 4, 5:
      try await driver.set(key: key, value: step, expires: expires)
      entries[key] = (step, deadline ?? live(key)?.deadline)
    default:
      try expect("\(subject), get", try await driver.get(key: key, as: Int.self), equals: live(key)?.value)
    }
  }
}
#endif
