#if Hummingbird
import Foundation
import Hummingbird
import LarderTesting

extension PersistDriverCaseList {
  /// Adds the cases about entries without deadlines.
  mutating func addEntryCases() {
    add(1, "A missing key reads as nil, and removing it succeeds") { driver, _ in
      try expect("get of a missing key", try await driver.text("a"), equals: nil)
      let found = try await driver.getWithTTL(key: "a", as: String.self)
      try expect("getWithTTL of a missing key", found?.object, equals: nil)
      try await driver.remove(key: "a")
    }
    add(2, "Values of all types round-trip") { driver, _ in
      let record = SampleRecord(name: "Ada \u{1F600} \"\\\n", number: .min, note: nil)
      try await driver.create(key: "record", value: record)
      try await driver.set(key: "list", value: [record, SampleRecord(name: "", number: .max, note: "n")])
      try await driver.set(key: "text", value: "")
      try await driver.set(key: "number", value: 0.1)
      try await driver.set(key: "truth", value: true)
      try await driver.set(key: "date", value: Date(timeIntervalSince1970: 1_767_225_600.123_456))
      try await driver.set(key: "bytes", value: Data([0, 255, 10]))
      try expect("record", try await driver.get(key: "record", as: SampleRecord.self), equals: record)
      try expect("list", try await driver.get(key: "list", as: [SampleRecord].self)?.last?.note, equals: "n")
      try expect("text", try await driver.text("text"), equals: "")
      try expect("number", try await driver.get(key: "number", as: Double.self), equals: 0.1)
      try expect("truth", try await driver.get(key: "truth", as: Bool.self), equals: true)
      try expect(
        "date", try await driver.get(key: "date", as: Date.self),
        equals: Date(timeIntervalSince1970: 1_767_225_600.123_456))
      try expect("bytes", try await driver.get(key: "bytes", as: Data.self), equals: Data([0, 255, 10]))
    }
    add(3, "Creating a live key throws duplicate and changes nothing") { driver, clock in
      try await driver.create(key: "a", value: "first", expires: .seconds(10))
      clock.advance(by: .seconds(4))
      try await expect("create of a live key", throws: .duplicate, "duplicate") {
        try await driver.create(key: "a", value: "second", expires: .seconds(100))
      }
      try expect("get", try await driver.text("a"), equals: "first")
      clock.advance(by: .seconds(7))
      try expect("get after the first deadline", try await driver.text("a"), equals: nil)
    }
    add(4, "Setting replaces the value, also with one of another type") { driver, _ in
      try await driver.set(key: "a", value: "first")
      try await driver.set(key: "a", value: "second")
      try expect("get", try await driver.text("a"), equals: "second")
      try await driver.set(key: "a", value: 3)
      try expect("get of the number", try await driver.get(key: "a", as: Int.self), equals: 3)
    }
    add(5, "A removed key is absent and can be created") { driver, _ in
      try await driver.create(key: "a", value: "first", expires: .seconds(10))
      try await driver.remove(key: "a")
      try expect("get", try await driver.text("a"), equals: nil)
      try await driver.create(key: "a", value: "second")
      try expect("get of the new entry", try await driver.text("a"), equals: "second")
      try expect("the time to live of the new entry", try await driver.timeToLive(of: "a"), equals: nil)
    }
    add(6, "A value of another type throws invalidConversion and stays") { driver, _ in
      try await driver.set(key: "a", value: "text", expires: .seconds(10))
      try await expect("get as a number", throws: .invalidConversion, "invalidConversion") {
        try await driver.get(key: "a", as: Int.self)
      }
      try await expect("get as a record", throws: .invalidConversion, "invalidConversion") {
        try await driver.get(key: "a", as: SampleRecord.self)
      }
      try await expect("get as a UUID", throws: .invalidConversion, "invalidConversion") {
        try await driver.get(key: "a", as: UUID.self)
      }
      try await expect("getWithTTL as a number", throws: .invalidConversion, "invalidConversion") {
        try await driver.getWithTTL(key: "a", as: Int.self)?.object
      }
      try expect("get", try await driver.text("a"), equals: "text")
    }
    add(7, "Keys with any characters are different keys") { driver, _ in
      let keys = ["a", "A", " a", "a ", "a/b", "a/../b", "\u{1F600}", "ключ", "a\"b", "a'b; --", "a%b", "a_b", "a\\b"]
      for key in keys { try await driver.create(key: key, value: key) }
      for key in keys { try expect("get(\(key))", try await driver.text(key), equals: key) }
    }
    add(8, "One of several creations at the same time succeeds") { driver, _ in
      for round in 0..<20 {
        let winners = try await withThrowingTaskGroup(of: Int?.self) { group in
          for number in 0..<8 {
            group.addTask {
              do {
                try await driver.create(key: "\(round)", value: number)
                return number
              } catch let error as PersistError where error == .duplicate {
                return nil
              }
            }
          }
          return try await group.reduce(into: [Int]()) { if let number = $1 { $0.append(number) } }
        }
        try expect("the number of successful creations", winners.count, equals: 1)
        try expect("get", try await driver.get(key: "\(round)", as: Int.self), equals: winners.first)
      }
    }
  }

  /// Adds the cases about a driver that is opened again.
  mutating func addReopeningCases() {
    add(30, "Entries and their deadlines survive reopening") { trial in
      try await trial.open(trial.location) { driver in
        try await driver.create(key: "a", value: "forever")
        try await driver.create(key: "b", value: "short", expires: .seconds(10))
        try await driver.create(key: "c", value: "removed")
        try await driver.remove(key: "c")
      }
      trial.location.clock.advance(by: .seconds(9))
      try await trial.open(trial.location) { driver in
        try expect("get of an entry without a deadline", try await driver.text("a"), equals: "forever")
        try expect("the time to live", try await driver.timeToLive(of: "b"), equals: .seconds(1))
        try expect("get of a removed entry", try await driver.text("c"), equals: nil)
        trial.location.clock.advance(by: .seconds(1))
        try expect("get after the deadline", try await driver.text("b"), equals: nil)
      }
    }
  }
}
#endif
