#if Postgres
import Larder
import Testing

@testable import LarderPostgres

/// The parts of the module that are plain values.
@Suite struct StateTests {
  // MARK: Sessions

  private final class Item: Sendable {}

  /// An allotment of connections that are named by numbers, with a clock of its own.
  private struct Connections {
    var allotment: Allotment<Item>
    let items = (0..<5).map { _ in Item() }
    var now = ContinuousClock.now

    init(limit: Int) { allotment = Allotment(limit: limit) }

    func number(of item: Item) -> Int? { items.firstIndex { $0 === item } }

    /// Returns the number of a free connection, or of the new one that is made, or `nil` if the owner must wait.
    mutating func take(_ owner: Item, mayConnect: Bool = true, new: Int? = nil) -> Int? {
      switch allotment.take(for: ObjectIdentifier(owner), mayConnect: mayConnect) {
      case .use(let item): return number(of: item)
      case .connect:
        allotment.finishConnecting(new.map { items[$0] })
        return new
      case nil: return nil
      }
    }

    mutating func give(_ number: Int?, _ owner: Item) {
      allotment.give(number.map { items[$0] }, of: ObjectIdentifier(owner), now: now)
    }
  }

  @Test func `the latest free connection serves the next call`() {
    var connections = Connections(limit: 3)
    let owner = Item()
    #expect([0, 1, 2].map { connections.take(owner, new: $0) } == [0, 1, 2])
    #expect(connections.take(owner, new: 3) == nil, "the limit is reached")
    for number in [1, 0, 2] { connections.give(number, owner) }
    #expect([connections.take(owner), connections.take(owner)] == [2, 0])
    // The one that is free is lost, and also one that is taken.
    let areLost = [1, 0].map { connections.allotment.lose(connections.items[$0]) }
    #expect(areLost == [true, true])
    let isLostAgain = connections.allotment.lose(connections.items[0])
    #expect(!isLostAgain)
    connections.give(0, owner)
    #expect(connections.take(owner, mayConnect: false, new: 3) == nil, "another is connected, so it waits for that one")
    #expect(connections.take(owner, new: 3) == 3)
    #expect((connections.allotment.connectedCount, connections.allotment.takenCount) == (2, 2))
  }

  @Test func `connections are made one after another unless there is none`() {
    var allotment = Allotment<Item>(limit: 4)
    let (owner, item) = (ObjectIdentifier(Item()), Item())
    func connects(_ turn: Allotment<Item>.Turn?) -> Bool { if case .connect = turn { true } else { false } }
    #expect(connects(allotment.take(for: owner, mayConnect: false)), "no connection exists, so it must try")
    #expect(connects(allotment.take(for: owner, mayConnect: true)))
    allotment.finishConnecting(item)
    #expect(allotment.take(for: owner, mayConnect: true) == nil, "another one is being made")
    allotment.finishConnecting(nil)
    allotment.give(nil, of: owner, now: .now)
    #expect(connects(allotment.take(for: owner, mayConnect: true)))
    #expect((allotment.connectedCount, allotment.connectingCount, allotment.takenCount) == (1, 1, 2))
  }

  @Test func `an owner without a connection gets one beyond the limit`() {
    var connections = Connections(limit: 2)
    let (locked, other) = (Item(), Item())
    #expect([0, 1, 2].map { connections.take(locked, new: $0) } == [0, 1, nil])
    #expect([2, 3].map { connections.take(other, new: $0) } == [2, nil])
    connections.give(2, other)
    #expect(connections.take(locked) == nil, "the limit is still reached")
    #expect(connections.take(other) == 2)
  }

  @Test func `unused connections beyond the limit are closed`() {
    var connections = Connections(limit: 1)
    let owners = (0..<3).map { _ in Item() }
    for number in 0..<3 { #expect(connections.take(owners[number], new: number) == number) }
    let start = connections.now
    for number in 0..<3 {
      connections.now = start + .seconds(number)
      connections.give(number, owners[number])
    }
    func removed(_ time: ContinuousClock.Instant?) -> [Int?] {
      connections.allotment.removeFree(unusedSince: time).map { connections.number(of: $0) }
    }
    #expect(removed(start - .seconds(1)).isEmpty)
    #expect(removed(start) == [0])
    #expect(connections.allotment.exceedsLimit)
    #expect(removed(start + .seconds(9)) == [1], "the limit is kept")
    #expect(!connections.allotment.exceedsLimit)
    #expect(removed(nil) == [2])
    #expect(connections.allotment.connectedCount == 0)
  }

  @Test func `waiting calls are served in order but first those of owners without a connection`() {
    var connections = Connections(limit: 2)
    let (first, second) = (Item(), Item())
    func serve() -> Int? { connections.allotment.serveNext(mayConnect: false)?.number }
    #expect([0, 1].map { connections.take(first, new: $0) } == [0, 1])
    #expect(connections.take(second, mayConnect: false) == nil, "no more connections can be made")
    for number in 1...3 { connections.allotment.wait(number, for: ObjectIdentifier(first)) }
    connections.allotment.wait(4, for: ObjectIdentifier(second))
    #expect(serve() == nil)
    connections.allotment.giveUp(1)
    connections.give(0, first)
    #expect(serve() == 4)
    connections.give(1, first)
    #expect(serve() == 2)
    #expect((connections.allotment.waiterCount, connections.allotment.takenCount) == (1, 2))
  }

  @Test func `several hosts get their ports and addresses`() {
    func hosts(_ options: [String: String]) -> [[String: String]] {
      Host.all(of: options).flatMap { $0.resolved { $0 == "b" ? ["1.2.3.4", "::1"] : [] } }.map(\.keywords)
    }
    #expect(hosts(["host": "a,/run", "port": "1,2"]) == [["host": "a", "port": "1"], ["host": "/run", "port": "2"]])
    #expect(
      hosts(["host": "a,b", "port": "1"]) == [
        ["host": "a", "port": "1"], ["host": "b", "hostaddr": "1.2.3.4", "port": "1"],
        ["host": "b", "hostaddr": "::1", "port": "1"],
      ])
    #expect(hosts(["hostaddr": "1.1.1.1,2.2.2.2"]) == [["hostaddr": "1.1.1.1"], ["hostaddr": "2.2.2.2"]])
    #expect(hosts(["host": "b", "hostaddr": "2.2.2.2"]) == [["host": "b", "hostaddr": "2.2.2.2"]], "not looked up")
    #expect(hosts([:]) == [[:]], "the library knows the default")
    #expect(hosts(["host": "a,b", "port": "1,2,3"]) == [[:]], "left to the library, which refuses it")
    #expect(hosts(["host": "a,b", "target_session_attrs": "prefer-standby"]) == [[:]], "the library prefers")
    #expect(Host.addresses(of: "localhost").contains { $0 == "127.0.0.1" || $0 == "::1" })
  }

  // MARK: Outcomes

  @Test func `only the same data tells the outcome`() {
    #expect(TransactionStatus(answer: "committed", isSameData: true) == .committed)
    #expect(TransactionStatus(answer: "aborted", isSameData: true) == .aborted)
    #expect(TransactionStatus(answer: "in progress", isSameData: true) == nil)
    #expect(TransactionStatus(answer: nil, isSameData: true) == .unknown, "the server has forgotten it")
    for answer in ["committed", "aborted", "in progress", nil] {
      #expect(TransactionStatus(answer: answer, isSameData: false) == .unknown)
    }
  }

  @Test func `codes of the server`() {
    let codes: [String: (StoreError.Code, isTransient: Bool)] = [
      "53100": (.full, true), "42501": (.notPermitted, false), "25006": (.notPermitted, true),
      "28P01": (.notPermitted, false), "57014": (.timedOut, true), "55P03": (.timedOut, true),
      "3D000": (.notFound, false), "XX001": (.corrupted, false), "": (.ioFailed, true), "53300": (.ioFailed, true),
      "57P01": (.ioFailed, true), "57P03": (.ioFailed, true), "40001": (.conflict, true), "40P01": (.conflict, true),
      "42P01": (.conflict, false), "42601": (.invalidArgument, false), "25P02": (.conflict, false),
      "23514": (.notPermitted, false), "P0001": (.notPermitted, false),
    ]
    for (state, expected) in codes {
      let error = PostgresError(sqlState: state, message: "text")
      #expect(error.storeErrorCode == expected.0, "\(state)")
      #expect(error.isTransient == expected.isTransient, "\(state)")
    }
    #expect(!PostgresError(sqlState: "22P02", message: "invalid input: secret").description.contains("secret"))
  }

  // MARK: Statements

  @Test func `a large batch is split`() throws {
    let parts = StoreTable.parts(ofSizes: (0..<10).map { $0 == 5 ? 1000 : 92 }, atMost: 200)
    #expect(parts.map(\.count) == [2, 2, 1, 1, 2, 2], "a value above the limit is alone")
    #expect(parts.flatMap { Array($0) } == Array(0..<10))
    #expect(StoreTable.parts(ofSizes: [], atMost: 200).isEmpty)
    let value = [UInt8](repeating: 1, count: 9 << 20)
    let table = StoreTable(name: "t", schema: "s", valueType: .bytes)
    let changes = try EncodedChanges(ChangeBatch([.set("a", value), .set("b", value), .remove("c")])) { _ in
    } encode: {
      $2 += $0
    }
    #expect(table.write(changes).map(\.parameters.count) == [2, 2, 1])
  }

  @Test func `changes of a batch become few statements`() throws {
    let table = StoreTable(name: "t", schema: "\"s\"", valueType: .bytes)
    func count(_ batch: ChangeBatch<[UInt8]>) throws -> Int {
      table.write(
        try EncodedChanges(batch) { _ in
        } encode: {
          $2 += $0
        }
      ).count
    }
    #expect(try count([.set("a", [1])]) == 1)
    #expect(try count([.set("b", [1]), .set("a", [1])]) == 1)
    #expect(try count([.remove("a")]) == 1)
    #expect(try count([.remove("a"), .remove("b")]) == 2)
    #expect(try count([.set("a", [1]), .remove("b")]) == 2)
    #expect(try count([.set("a", [1]), .removeAll(.all), .set("a", [2])]) == 3)
  }
}
#endif
