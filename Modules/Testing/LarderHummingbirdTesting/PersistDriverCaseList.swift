#if Hummingbird
import Foundation
import Hummingbird
import LarderTesting

/// The cases of a suite; an extension in each file of cases adds its own.
struct PersistDriverCaseList {
  let driver: String
  let seed: UInt64
  let open: PersistDriverSuite.Opening
  private(set) var cases: [PersistDriverCase] = []

  /// Adds a case.
  ///
  /// - Parameters:
  ///   - id: The number of the case.
  ///   - name: The rule that must hold.
  ///   - body: A closure that throws a ``BrokenRule`` if the driver breaks the rule.
  mutating func add(_ id: Int, _ name: String, _ body: @escaping @Sendable (DriverTrial) async throws -> Void) {
    let (driver, seed, open) = (driver, seed, open)
    cases.append(
      PersistDriverCase(id: id, name: name) { driverCase in
        let location = PersistDriverLocation(
          name: "case-\(id)-" + UUID().uuidString.lowercased(), clock: ManualClock())
        do {
          try await body(DriverTrial(location: location, seed: seed, open: open))
        } catch let rule as BrokenRule {
          throw PersistDriverFailure(driver: driver, driverCase: driverCase, message: rule.message, seed: seed)
        } catch {
          try Task.checkCancellation()
          throw PersistDriverFailure(
            driver: driver, driverCase: driverCase, message: "unexpected error: \(error)", seed: seed)
        }
      })
  }

  /// Adds a case that needs one driver.
  mutating func add(
    _ id: Int, _ name: String,
    driver body: @escaping @Sendable (any PersistDriver, ManualClock) async throws -> Void
  ) {
    add(id, name) { trial in
      try await trial.open(trial.location) { try await body($0, trial.location.clock) }
    }
  }
}

/// The means of a case.
struct DriverTrial: Sendable {
  let location: PersistDriverLocation
  let seed: UInt64
  let open: PersistDriverSuite.Opening
}

/// The broken rule that a case has found; the suite adds the case.
struct BrokenRule: Error {
  let message: String
}

/// A value of the cases.
struct SampleRecord: Codable, Sendable, Equatable {
  var name: String
  var number: Int
  var note: String?
}

/// Throws a ``BrokenRule`` unless two values are equal.
func expect<Value: Equatable>(_ subject: String, _ got: Value, equals expected: Value) throws {
  guard got != expected else { return }
  throw BrokenRule(message: "\(subject): expected \(expected), got \(got)")
}

/// Throws a ``BrokenRule`` unless an operation throws a certain error of Hummingbird.
func expect<Result>(
  _ subject: String, throws expected: PersistError, _ text: String, by operation: () async throws -> Result
) async throws {
  let got: String
  do {
    got = "the result \(try await operation())"
  } catch let error as PersistError where error == expected {
    return
  } catch {
    got = "the error \(error)"
  }
  throw BrokenRule(message: "\(subject): expected PersistError.\(text), got \(got)")
}

extension PersistDriver {
  /// Returns the text of a key.
  func text(_ key: String) async throws -> String? {
    try await get(key: key, as: String.self)
  }

  /// Returns the time to live of a live entry.
  ///
  /// - Throws: ``BrokenRule`` if there is no live entry.
  func timeToLive(of key: String) async throws -> Duration? {
    guard let found = try await getWithTTL(key: key, as: String.self) else {
      throw BrokenRule(message: "getWithTTL(\(key)): expected a live entry, got nil")
    }
    return found.ttl
  }
}
#endif
