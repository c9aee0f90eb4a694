#if Postgres
import Larder
import Testing

@testable import LarderPostgres

/// The parts of the module that are plain values.
@Suite struct StateTests {
  // MARK: Sessions

  private final class Owner: Sendable {}

  private func id(_ owner: Owner) -> ObjectIdentifier { ObjectIdentifier(owner) }

  @Test func theLatestConnectedSessionServesTheNextCall() {
    var allotment = SessionPool.Allotment(limit: 3)
    let owner = Owner()
    func take(mayConnect: Bool = true, connected: Set<Int> = []) -> Int? {
      allotment.take(for: id(owner), mayConnect: mayConnect, isConnected: connected.contains)
    }
    #expect([take(), take(), take(), take()] == [0, 1, 2, nil])
    for session in [1, 0, 2] { allotment.give(session, of: id(owner)) }
    #expect(take(connected: [0, 1]) == 0)
    #expect(take(connected: [0, 1]) == 1)
    #expect(take(mayConnect: false, connected: [0, 1]) == nil, "others are connected, so it waits for one of them")
    #expect(take(mayConnect: false) == 2, "no session is connected, so it must try")
  }

  @Test func anOwnerWithoutASessionGetsOneBeyondTheLimit() {
    var allotment = SessionPool.Allotment(limit: 2)
    let (locked, other) = (Owner(), Owner())
    func take(_ owner: Owner) -> Int? {
      allotment.take(for: id(owner), mayConnect: true) { _ in true }
    }
    #expect([take(locked), take(locked), take(locked)] == [0, 1, nil])
    #expect([take(other), take(other)] == [2, nil])
    allotment.give(2, of: id(other))
    #expect(take(locked) == nil, "the limit is still reached")
    #expect(take(other) == 2)
  }

  @Test func waitingCallsAreServedInOrderButFirstThoseOfOwnersWithoutASession() {
    var allotment = SessionPool.Allotment(limit: 2)
    let (first, second) = (Owner(), Owner())
    func take(_ owner: Owner, mayConnect: Bool = true) -> Int? {
      allotment.take(for: id(owner), mayConnect: mayConnect) { _ in true }
    }
    func serve() -> Int? { allotment.serveNext(mayConnect: false) { _ in true }?.number }
    #expect([take(first), take(first)] == [0, 1])
    #expect(take(second, mayConnect: false) == nil, "no more connections can be made")
    for number in 1...3 { allotment.wait(number, for: id(first)) }
    allotment.wait(4, for: id(second))
    #expect(serve() == nil)
    allotment.giveUp(1)
    allotment.give(0, of: id(first))
    #expect(serve() == 4)
    allotment.give(1, of: id(first))
    #expect(serve() == 2)
    #expect((allotment.waiterCount, allotment.takenCount) == (1, 2))
  }

  @Test func severalHostsGetTheirPortsAndAddresses() {
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

  @Test func onlyTheSameDataTellsTheOutcome() {
    #expect(TransactionStatus(answer: "committed", isSameData: true) == .committed)
    #expect(TransactionStatus(answer: "aborted", isSameData: true) == .aborted)
    #expect(TransactionStatus(answer: "in progress", isSameData: true) == nil)
    #expect(TransactionStatus(answer: nil, isSameData: true) == .unknown, "the server has forgotten it")
    for answer in ["committed", "aborted", "in progress", nil] {
      #expect(TransactionStatus(answer: answer, isSameData: false) == .unknown)
    }
  }

  @Test func codesOfTheServer() {
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

  @Test func aLargeBatchIsSplit() throws {
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

  @Test func changesOfABatchBecomeFewStatements() throws {
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
