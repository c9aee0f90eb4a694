#if Hummingbird
import Hummingbird
import LarderTesting

extension PersistDriverCaseList {
  /// Adds the cases about deadlines.
  mutating func addDeadlineCases() {
    add(10, "An entry is live before its deadline, and absent after it") { driver, clock in
      try await driver.create(key: "a", value: "created", expires: .seconds(10))
      try await driver.set(key: "b", value: "set", expires: .seconds(10))
      clock.advance(by: .milliseconds(9999))
      try expect("get before the deadline", try await driver.text("a"), equals: "created")
      try expect("get before the deadline", try await driver.text("b"), equals: "set")
      clock.advance(by: .milliseconds(2))
      try expect("get after the deadline", try await driver.text("a"), equals: nil)
      try expect("get after the deadline", try await driver.text("b"), equals: nil)
      let found = try await driver.getWithTTL(key: "a", as: String.self)
      try expect("getWithTTL after the deadline", found?.object, equals: nil)
    }
    add(11, "An entry is absent when its time to live has passed, to the instant") { driver, clock in
      try await driver.create(key: "a", value: "text", expires: .seconds(10))
      clock.advance(by: .seconds(10))
      try expect("get at the deadline", try await driver.text("a"), equals: nil)
    }
    add(12, "An expired key can be created") { driver, clock in
      try await driver.create(key: "a", value: "first", expires: .seconds(10))
      clock.advance(by: .seconds(11))
      do {
        try await driver.create(key: "a", value: "second", expires: .seconds(5))
      } catch let error as PersistError where error == .duplicate {
        throw BrokenRule(message: "create of an expired key: expected success, got PersistError.duplicate")
      }
      try expect("get", try await driver.text("a"), equals: "second")
      try expect("the time to live", try await driver.timeToLive(of: "a"), equals: .seconds(5))
    }
    add(13, "Setting without a time to live keeps the deadline of a live entry") { driver, clock in
      try await driver.create(key: "a", value: "first", expires: .seconds(10))
      clock.advance(by: .seconds(4))
      try await driver.set(key: "a", value: "second")
      try expect("get", try await driver.text("a"), equals: "second")
      clock.advance(by: .seconds(7))
      try expect("get after the deadline", try await driver.text("a"), equals: nil)
    }
    add(14, "Setting without a time to live takes no deadline from an expired entry") { driver, clock in
      try await driver.create(key: "a", value: "first", expires: .seconds(10))
      clock.advance(by: .seconds(11))
      try await driver.set(key: "a", value: "second")
      try expect("get", try await driver.text("a"), equals: "second")
      clock.advance(by: .seconds(100_000))
      try expect("get much later", try await driver.text("a"), equals: "second")
    }
    add(15, "Setting with a time to live replaces the deadline") { driver, clock in
      try await driver.create(key: "a", value: "first", expires: .seconds(10))
      try await driver.set(key: "a", value: "second", expires: .seconds(20))
      clock.advance(by: .seconds(11))
      try expect("get after the earlier deadline", try await driver.text("a"), equals: "second")
      try await driver.set(key: "a", value: "third", expires: .seconds(1))
      clock.advance(by: .seconds(2))
      try expect("get after the shorter deadline", try await driver.text("a"), equals: nil)
    }
    add(16, "An entry without a time to live does not expire") { driver, clock in
      try await driver.create(key: "a", value: "text")
      try await driver.set(key: "b", value: "text")
      clock.advance(by: .seconds(1_000_000_000))
      try expect("get much later", try await driver.text("a"), equals: "text")
      try expect("get much later", try await driver.text("b"), equals: "text")
    }
    add(17, "getWithTTL returns the remaining time to live") { driver, clock in
      try await driver.create(key: "a", value: "text", expires: .seconds(10))
      try await driver.create(key: "b", value: "text")
      clock.advance(by: .milliseconds(2500))
      try expect("the time to live", try await driver.timeToLive(of: "a"), equals: .milliseconds(7500))
      try expect("the time to live of an entry that stays", try await driver.timeToLive(of: "b"), equals: nil)
    }
    add(18, "An entry with a time to live of zero or less is absent") { driver, _ in
      try await driver.set(key: "a", value: "text", expires: .zero)
      try expect("get", try await driver.text("a"), equals: nil)
      try await driver.set(key: "b", value: "text")
      try await driver.set(key: "b", value: "text", expires: .seconds(-1))
      try expect("get after a negative time to live", try await driver.text("b"), equals: nil)
    }
    add(19, "The deadlines of different keys are independent") { driver, clock in
      for number in 1...20 { try await driver.create(key: "\(number)", value: "text", expires: .seconds(number)) }
      clock.advance(by: .milliseconds(10_500))
      for number in 1...20 {
        try expect("get(\(number))", try await driver.text("\(number)"), equals: number > 10 ? "text" : nil)
      }
    }
  }
}
#endif
