#if HTTPCache
import Testing

@testable import LarderHTTPCache

private final class StubFetch: Sendable {}

@Suite struct FlightsTests {
  private typealias Table = Flights<StubFetch>
  private let key = Table.Key(url: "https://example.com/", partition: [])

  private func admit(_ table: inout Table, _ key: Table.Key, at now: Duration = .zero) -> Table.Admission {
    table.admit(key, at: now) { StubFetch() }
  }

  @Test func `the first request leads and others join`() throws {
    var table = Table(coolDown: .seconds(10))
    guard case .lead(let fetch) = admit(&table, key) else { throw Unexpected() }
    guard case .join(let joined) = admit(&table, key) else { throw Unexpected() }
    #expect(joined === fetch)
    guard case .lead = admit(&table, Table.Key(url: key.url, partition: [1])) else { throw Unexpected() }
    guard case .lead = admit(&table, Table.Key(url: key.url + "a", partition: [])) else { throw Unexpected() }
    #expect(table.count == 3)
  }

  @Test func `an ended flight is not joined`() throws {
    var table = Table(coolDown: .seconds(10))
    guard case .lead(let first) = admit(&table, key) else { throw Unexpected() }
    table.end(key, first)
    guard case .lead(let second) = admit(&table, key) else { throw Unexpected() }
    table.end(key, first)
    guard case .join(let joined) = admit(&table, key) else { throw Unexpected() }
    #expect(joined === second, "the end of an earlier flight must not end the later one")
  }

  @Test func `nobody waits during a cool down`() throws {
    var table = Table(coolDown: .seconds(10))
    guard case .lead(let fetch) = admit(&table, key) else { throw Unexpected() }
    table.refuse(key, fetch, at: .seconds(1))
    guard case .alone = admit(&table, key, at: .seconds(2)) else { throw Unexpected() }
    guard case .alone = admit(&table, key, at: .nanoseconds(10_999_999_999)) else { throw Unexpected() }
    guard case .lead = admit(&table, Table.Key(url: key.url, partition: [1]), at: .seconds(2)) else {
      throw Unexpected()
    }
    guard case .lead = admit(&table, key, at: .seconds(11)) else { throw Unexpected() }
    guard case .join = admit(&table, key, at: .seconds(11)) else { throw Unexpected() }
  }

  @Test func `cool downs are bounded`() throws {
    var table = Table(coolDown: .seconds(10))
    for index in 0..<3_000 {
      let key = Table.Key(url: "\(index)", partition: [])
      guard case .lead(let fetch) = admit(&table, key) else { throw Unexpected() }
      table.refuse(key, fetch, at: .milliseconds(index))
      #expect(table.coolDownCount <= Table.highestCoolDownCount)
    }
    guard case .alone = admit(&table, Table.Key(url: "2999", partition: []), at: .seconds(3)) else {
      throw Unexpected()
    }
    guard case .lead = admit(&table, Table.Key(url: "0", partition: []), at: .seconds(3)) else { throw Unexpected() }
  }

  @Test func `passed cool downs make room first`() throws {
    var table = Table(coolDown: .seconds(10))
    for index in 0..<Table.highestCoolDownCount {
      let key = Table.Key(url: "\(index)", partition: [])
      guard case .lead(let fetch) = admit(&table, key) else { throw Unexpected() }
      table.refuse(key, fetch, at: index < 1_000 ? .zero : .seconds(9))
    }
    guard case .lead(let fetch) = admit(&table, key, at: .seconds(11)) else { throw Unexpected() }
    table.refuse(key, fetch, at: .seconds(11))
    #expect(table.coolDownCount == Table.highestCoolDownCount - 1_000 + 1)
  }

  @Test func `an invalidation ends the flights of its URLs`() throws {
    var table = Table(coolDown: .seconds(10))
    let other = Table.Key(url: "https://example.com/other", partition: [])
    let partition = Table.Key(url: key.url, partition: [1])
    for key in [key, other, partition] { _ = admit(&table, key) }
    table.invalidate { $0 == key.url }
    guard case .join = admit(&table, other) else { throw Unexpected() }
    guard case .lead = admit(&table, key) else { throw Unexpected() }
    guard case .lead = admit(&table, partition) else { throw Unexpected() }
  }

  /// Every sequence of events up to a length, against a plain list of what must be true.
  @Test func `every short history`() throws {
    enum Event: CaseIterable { case admit, endFirst, endLast, refuseFirst, refuseLast, invalidate, wait }
    func histories(_ length: Int) -> [[Event]] {
      length == 0 ? [[]] : histories(length - 1).flatMap { rest in Event.allCases.map { rest + [$0] } }
    }
    for history in histories(6) {
      var table = Table(coolDown: .seconds(2))
      var now = Duration.zero
      var fetches: [StubFetch] = []
      var current: StubFetch?
      var coolDownEnd: Duration?
      for event in history {
        switch event {
        case .admit:
          switch admit(&table, key, at: now) {
          case .lead(let fetch):
            try #require(current == nil && !(coolDownEnd.map { now < $0 } ?? false), "\(history)")
            current = fetch
            fetches.append(fetch)
          case .join(let fetch): try #require(fetch === current, "\(history)")
          case .alone: try #require(current == nil && coolDownEnd.map { now < $0 } == true, "\(history)")
          }
        case .endFirst, .endLast, .refuseFirst, .refuseLast:
          let isFirst = event == .endFirst || event == .refuseFirst
          guard let fetch = isFirst ? fetches.first : fetches.last else { continue }
          if event == .endFirst || event == .endLast {
            table.end(key, fetch)
          } else {
            table.refuse(key, fetch, at: now)
            coolDownEnd = now + .seconds(2)
          }
          if fetch === current { current = nil }
        case .invalidate:
          table.invalidate { $0 == key.url }
          current = nil
        case .wait: now += .seconds(1)
        }
      }
    }
  }

  private struct Unexpected: Error {}
}
#endif
