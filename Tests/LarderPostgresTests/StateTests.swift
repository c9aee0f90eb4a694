#if Postgres
import Larder
import Testing

@testable import LarderPostgres

/// The parts of the module that are plain values.
@Suite struct StateTests {
  // MARK: Sessions

  @Test func readsAvoidSessionsThatMayWait() {
    var allotment = SessionPool.Allotment(writerCount: 2)
    #expect([allotment.takeForReading(), allotment.takeForReading(), allotment.takeForReading()] == [0, 1, 2])
    #expect(allotment.takeForWriting() == 1)
    #expect(allotment.takeForWriting() == 2)
    // The first session alone never waits for a lock.
    #expect([allotment.takeForReading(), allotment.takeForReading()] == [0, 0])
    allotment.endReading(1)
    allotment.endWriting(1)
    #expect(allotment.takeForReading() == 1)
  }

  @Test func aWriteHasItsSessionForItself() {
    var allotment = SessionPool.Allotment(writerCount: 2)
    _ = (allotment.takeForReading(), allotment.takeForReading())
    #expect(allotment.takeForWriting() == 2, "the one with fewer reads")
    #expect(allotment.takeForWriting() == 1)
    #expect(allotment.takeForWriting() == nil)
    allotment.endWriting(2)
    #expect(allotment.takeForWriting() == 2)
  }

  @Test func severalHostsGetTheirPorts() {
    typealias Host = SessionConfiguration.Host
    #expect(
      SessionConfiguration.hosts(named: "a,b", ports: "1,2") == [
        Host(name: "a", port: "1"), Host(name: "b", port: "2"),
      ])
    #expect(
      SessionConfiguration.hosts(named: "a,b", ports: "") == [Host(name: "a", port: ""), Host(name: "b", port: "")])
    #expect(SessionConfiguration.hosts(named: "a", ports: "1").isEmpty)
    #expect(SessionConfiguration.hosts(named: "a,b", ports: "1,2,3").isEmpty, "left to the library, which refuses it")
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
