import Larder
import LarderTesting
import Testing

/// The state of a limiter as a state machine, with a clock that jumps.
@Suite struct LimiterStateTests {
  private static let second: Int64 = 1_000_000_000

  /// A state with rules, whose requests an expectation can make.
  private final class Limiter {
    private(set) var state: LimiterState
    private let rules: LimiterConfiguration

    init(_ rules: LimiterConfiguration, _ state: LimiterState = LimiterState(origin: 1)) {
      (self.rules, self.state) = (rules, state)
    }

    func acquire(_ request: LimiterState.Request, at reading: ClockReading) -> LimiterState.Decision {
      state.acquire(request, by: rules, at: reading)
    }

    func renew(_ id: UInt64, at reading: ClockReading) -> Bool { state.renew(id, by: rules, at: reading) }

    func release(_ id: UInt64) -> Bool { state.release(id) }

    func returnStarts(of id: UInt64, except used: Int = 0, to rate: RateLimitState, at reading: ClockReading) -> Bool {
      state.returnStarts(of: id, except: used, to: rate, by: rules, at: reading)
    }
  }

  private func reading(_ seconds: Double, origin: UInt128 = 1) -> ClockReading {
    ClockReading(origin: origin, nanoseconds: Int64(seconds * 1e9))
  }

  private func request(_ id: UInt64, owner: UInt64 = 1, hasWaited: Bool = false) -> LimiterState.Request {
    LimiterState.Request(id: id, owner: owner, hasWaited: hasWaited)
  }

  // MARK: Permits

  @Test func `there are at most as many permits as the limit`() {
    let rules = LimiterConfiguration(concurrency: 2, lease: .seconds(10))
    let limiter = Limiter(rules)
    #expect(limiter.acquire(request(1), at: reading(0)) == .granted)
    #expect(limiter.acquire(request(2), at: reading(1)) == .granted)
    #expect(limiter.acquire(request(3), at: reading(2)) == .refused(retryAfter: .seconds(1)))
    #expect(limiter.release(1))
    #expect(!limiter.release(1))
    #expect(limiter.acquire(request(3), at: reading(2)) == .granted)
    #expect(limiter.state.permitCount(at: reading(2)) == 2)
  }

  @Test func `a permit ends with its lease`() {
    let rules = LimiterConfiguration(concurrency: 1, lease: .seconds(10), pollInterval: .seconds(60))
    let limiter = Limiter(rules)
    #expect(limiter.acquire(request(1), at: reading(0)) == .granted)
    #expect(limiter.renew(1, at: reading(5)))
    #expect(limiter.acquire(request(2), at: reading(9)) == .refused(retryAfter: .seconds(6)))
    #expect(limiter.state.permitCount(at: reading(14)) == 1)
    #expect(limiter.state.permitCount(at: reading(15)) == 0)
    // No other permit was granted since.
    #expect(limiter.renew(1, at: reading(16)))
    #expect(limiter.acquire(request(2), at: reading(26)) == .granted)
    #expect(!limiter.renew(1, at: reading(26)))
  }

  @Test func `after a restart each permit has its lease and no start is available`() {
    let rules = LimiterConfiguration(
      concurrency: 3, rate: RateLimit(1, per: .seconds(1), burst: 100), lease: .seconds(10), pollInterval: .seconds(60))
    let limiter = Limiter(rules)
    #expect(limiter.acquire(request(1), at: reading(1000)) == .granted)
    // The clock of the second boot is behind that of the first one, that of the third one ahead.
    for (origin, time) in [(UInt128(2), 5.0), (3, 1_000_000)] {
      let limiter = Limiter(rules, limiter.state)
      #expect(
        limiter.acquire(request(2), at: reading(time, origin: origin)) == .refused(retryAfter: .seconds(1)))
      // The refused request has noted the time of the restart.
      #expect(limiter.acquire(request(2), at: reading(time + 1, origin: origin)) == .granted)
      #expect(limiter.state.permitCount(at: reading(time + 9, origin: origin)) == 2)
      #expect(limiter.state.permitCount(at: reading(time + 10, origin: origin)) == 1)
    }
  }

  @Test func `a clock that is set back extends no wait`() {
    let rules = LimiterConfiguration(
      concurrency: 2, rate: RateLimit(1, per: .seconds(1)), lease: .seconds(10), pollInterval: .seconds(60))
    let limiter = Limiter(rules)
    #expect(limiter.acquire(request(1), at: reading(1000)) == .granted)
    #expect(limiter.acquire(request(2), at: reading(0)) == .refused(retryAfter: .seconds(1)))
    #expect(limiter.acquire(request(2), at: reading(1)) == .granted)
    #expect(limiter.acquire(request(3), at: reading(3)) == .refused(retryAfter: .seconds(7)))
    #expect(limiter.acquire(request(3), at: reading(10)) == .granted)
  }

  /// Only the starts before the latest request are unknown in their number.
  @Test func `the recent starts are known when a clock is set back`() {
    let rules = LimiterConfiguration(rate: RateLimit(1, per: .seconds(1), burst: 3))
    for (times, isGranted) in [([1000.0], true), ([999.0, 1000], false)] {
      let limiter = Limiter(rules)
      for time in times { #expect(limiter.acquire(request(1), at: reading(time)) == .granted) }
      #expect((limiter.acquire(request(2), at: reading(0)) == .granted) == isGranted)
    }
  }

  // MARK: Order

  @Test func `an object that was refused twice has a reservation`() {
    let rules = LimiterConfiguration(rate: RateLimit(1, per: .seconds(10)), pollInterval: .seconds(1))
    let limiter = Limiter(rules)
    #expect(limiter.acquire(request(1), at: reading(0)) == .granted)
    #expect(limiter.acquire(request(2, owner: 2), at: reading(0)) == .refused(retryAfter: .seconds(10)))
    // The first object is faster again.
    #expect(limiter.acquire(request(3), at: reading(10)) == .granted)
    let retry = request(4, owner: 2, hasWaited: true)
    #expect(limiter.acquire(retry, at: reading(11)) == .refused(retryAfter: .seconds(9)))
    #expect(limiter.acquire(request(5), at: reading(20)) != .granted)
    #expect(limiter.acquire(retry, at: reading(21)) == .granted)
    #expect(limiter.acquire(request(5), at: reading(31)) == .granted)
  }

  @Test func `a reservation without its owner ends`() {
    let rules = LimiterConfiguration(concurrency: 1, lease: .seconds(100), pollInterval: .seconds(1))
    let limiter = Limiter(rules)
    #expect(limiter.acquire(request(1), at: reading(0)) == .granted)
    let retry = request(2, owner: 2, hasWaited: true)
    #expect(limiter.acquire(retry, at: reading(1)) == .refused(retryAfter: .seconds(1)))
    #expect(limiter.release(1))
    #expect(limiter.acquire(request(3), at: reading(2)) == .refused(retryAfter: .seconds(1)))
    #expect(limiter.acquire(request(3), at: reading(5)) == .granted)
  }

  @Test func `a reservation of a clock that was ahead ends in its duration`() {
    let rules = LimiterConfiguration(concurrency: 1, lease: .seconds(100), pollInterval: .seconds(1))
    let limiter = Limiter(rules)
    #expect(limiter.acquire(request(1), at: reading(5000)) == .granted)
    #expect(limiter.acquire(request(2, owner: 2, hasWaited: true), at: reading(5001)) != .granted)
    #expect(limiter.release(1))
    #expect(limiter.acquire(request(3), at: reading(0)) != .granted)
    #expect(limiter.acquire(request(3), at: reading(5)) == .granted)
  }

  // MARK: Returned starts

  @Test func `starts are returned once and only if none was permitted since`() {
    let limiter = Limiter(LimiterConfiguration(rate: RateLimit(1, per: .seconds(1), burst: 2)))
    let before = limiter.state.rate
    #expect(limiter.acquire(request(1), at: reading(0)) == .granted)
    let between = limiter.state.rate
    #expect(limiter.acquire(request(2), at: reading(0)) == .granted)
    #expect(!limiter.returnStarts(of: 1, to: before, at: reading(0)))
    #expect(limiter.acquire(request(3), at: reading(0)) != .granted)
    #expect(limiter.returnStarts(of: 2, to: between, at: reading(0)))
    #expect(!limiter.returnStarts(of: 2, to: between, at: reading(0)))
    #expect(limiter.acquire(request(3), at: reading(0)) == .granted)
    // After a restart, the time of the previous starts means nothing.
    #expect(limiter.acquire(request(4), at: reading(0, origin: 2)) != .granted)
    #expect(!limiter.returnStarts(of: 3, to: between, at: reading(0)))
  }

  @Test func `some of the starts of a permit are returned`() {
    let limiter = Limiter(LimiterConfiguration(rate: RateLimit(1, per: .seconds(1), burst: 5)))
    var five = request(1)
    five.starts = 5
    let before = limiter.state.rate
    #expect(limiter.acquire(five, at: reading(0)) == .granted)
    #expect(limiter.returnStarts(of: 1, except: 2, to: before, at: reading(0)))
    for id in 2...4 { #expect(limiter.acquire(request(UInt64(id)), at: reading(0)) == .granted) }
    #expect(limiter.acquire(request(5), at: reading(0)) == .refused(retryAfter: .seconds(1)))
  }

  // MARK: Random sequences

  /// A holder's own view of a permit, by the true time.
  private struct Holder {
    let id: UInt64
    /// The time until which it may work.
    var end: Int64
  }

  @Test func `random sequences keep both limits`() throws {
    var generator = SeededGenerator()
    for _ in 0..<300 {
      let rules = LimiterConfiguration(
        concurrency: generator.integer(in: 1...4),
        rate: RateLimit(generator.integer(in: 1...10), per: .seconds(1), burst: generator.integer(in: 1...5)),
        lease: .seconds(3))
      var state = LimiterState(origin: 1)
      var starts = RateLimitTests.Starts()
      var holders: [Holder] = []
      var grants: [(id: UInt64, time: Int64, reading: ClockReading, rate: RateLimitState)] = []
      var (time, offset, origin): (Int64, Int64, UInt128) = (0, 0, 1)
      for id in 1...UInt64(200) {
        time += generator.time(0...Self.second)
        switch generator.integer(in: 0...15) {
        case 0: offset -= generator.time(0...20 * Self.second)
        case 1:
          // All holders may survive, because another origin can also be that of a container.
          origin += 1
          offset = generator.time(-100 * Self.second...100 * Self.second)
        default: break
        }
        let most: Int64 = generator.integer(in: 0...5) == 0 ? 10 * Self.second : Self.second / 10
        let early = generator.time(0...most)
        let reading = ClockReading(
          origin: origin, nanoseconds: time + offset - early, uncertainty: early + generator.time(0...most))
        holders.removeAll { $0.end <= time }
        switch generator.integer(in: 0...4) {
        case 0:
          guard let holder = holders.randomElement(using: &generator) else { continue }
          let isReleased = state.release(holder.id)
          #expect(isReleased)
          holders.removeAll { $0.id == holder.id }
        case 1:
          guard let index = holders.indices.randomElement(using: &generator) else { continue }
          let isRenewed = state.renew(holders[index].id, by: rules, at: reading)
          #expect(isRenewed)
          holders[index].end = time + 3 * Self.second
        case 2:
          // Work that does not start, at any later time.
          guard let unused = grants.randomElement(using: &generator) else { continue }
          let start = starts.all.lastIndex { $0.time == unused.time }
          guard let start, starts.all[start].count > 0 else { continue }
          let used = generator.integer(in: 0...starts.all[start].count - 1)
          if state.returnStarts(of: unused.id, except: used, to: unused.rate, by: rules, at: unused.reading) {
            starts.all[start].count = used
          }
        default:
          let rate = state.rate
          let request = LimiterState.Request(
            id: id, owner: .random(in: 1...3, using: &generator),
            starts: generator.integer(in: 1...min(3, rules.rate?.burst ?? 1)), hasWaited: .random(using: &generator))
          guard state.acquire(request, by: rules, at: reading) == .granted else { break }
          starts.all.append((time, request.starts))
          grants.append((id, time, reading, rate))
          holders.append(Holder(id: id, end: time + 3 * Self.second))
          #expect(holders.count <= rules.concurrency ?? 0)
        }
        state = try LimiterState(record: state.record)
      }
      starts.expect(within: try #require(rules.rate))
      #expect(!starts.all.isEmpty)
    }
  }

  // MARK: Records

  @Test func `every damage of a record is noticed`() throws {
    let rules = LimiterConfiguration(concurrency: 1, rate: RateLimit(1, per: .seconds(1), burst: 2))
    var state = LimiterState(origin: 7)
    _ = state.acquire(request(1), by: rules, at: reading(1, origin: 7))
    _ = state.acquire(request(2, owner: 2, hasWaited: true), by: rules, at: reading(1, origin: 7))
    let record = state.record
    #expect(try LimiterState(record: record) == state)
    #expect(record.count == 115)
    for count in 0..<record.count {
      #expect(throws: LimiterState.RecordProblem.damaged) { try LimiterState(record: Array(record.prefix(count))) }
    }
    for index in record.indices {
      for bit in 0..<8 {
        var damaged = record
        damaged[index] ^= 1 << bit
        #expect(throws: LimiterState.RecordProblem.self) { try LimiterState(record: damaged) }
      }
    }
    #expect(throws: LimiterState.RecordProblem.damaged) { try LimiterState(record: record + [0]) }
    #expect(throws: LimiterState.RecordProblem.version(3)) { try LimiterState(record: [3]) }
  }

  @Test func `a record of version 1 is read`() throws {
    var record: [UInt8] = [1] + [UInt8](repeating: 0, count: 15) + [7]
    record += (5 * Self.second).bigEndianBytes
    record += [UInt8](repeating: 0, count: 38)
    record += CRC32C.checksum(of: record).bigEndianBytes
    let limiter = Limiter(
      LimiterConfiguration(rate: RateLimit(1, per: .seconds(1), burst: 3)), try LimiterState(record: record))
    #expect(limiter.acquire(request(1), at: reading(2, origin: 7)) == .refused(retryAfter: .seconds(1)))
    #expect(limiter.acquire(request(1), at: reading(3, origin: 7)) == .granted)
    #expect(limiter.state.record.first == 2)
    #expect(throws: LimiterState.RecordProblem.damaged) { try LimiterState(record: record + [0]) }
  }
}
