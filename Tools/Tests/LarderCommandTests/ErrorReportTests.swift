import ArgumentParser
import Larder
import LarderPostgres
import LarderSQLite
import Testing

@testable import LarderCommand
@testable import StoreAccess

@Suite struct ErrorReportTests {
  private func report(_ error: any Error, _ arguments: String...) -> ErrorReport {
    ErrorReport(error, arguments: arguments)
  }

  private static let statuses: [(StoreError.Code, Int32)] = [
    (.notFound, 66), (.corrupted, 65), (.unrecognizedFormat, 65), (.versionMismatch, 65), (.valueTooLarge, 65),
    (.encodingFailed, 65), (.notPermitted, 77), (.locked, 75), (.timedOut, 75), (.full, 74), (.ioFailed, 74),
    (.unsupported, 64), (.invalidKey, 64), (.invalidArgument, 64), (.closed, 70),
    (StoreError.Code(rawValue: "neverHeardOf"), 70),
  ]

  @Test(arguments: statuses)
  func `each kind of failure has an exit code`(code: StoreError.Code, status: Int32) {
    #expect(report(StoreError(code, during: .compact, message: "no")).status == status)
  }

  @Test func `an error is one line with advice`() {
    let error = StoreError(
      .locked, during: .open, store: "a\nb.json", key: "ada", message: "it is open elsewhere",
      underlying: BadLine("x"), outcome: .unknown)
    #expect(
      report(error).line
        == "larder: a b.json: it is open elsewhere (BadLine(reason: \"x\")) (key \"ada\") "
        + "(whether the change took effect is unknown). Close the other program, or try again.")
  }

  /// The advice about permissions would be wrong for a trigger.
  @Test func `the advice for a refused change follows its cause`() {
    func line(_ cause: (any Error)?) -> String? {
      report(StoreError(.notPermitted, during: .apply, message: "no", underlying: cause)).line
    }
    #expect(line(nil)?.hasSuffix("Check the permissions of the file and of its folder.") == true)
    #expect(line(SQLiteError(code: 8, message: "read-only"))?.contains("Check the permissions of the file") == true)
    // SQLITE_ERROR and SQLITE_CONSTRAINT_TRIGGER.
    for code in [1, 19 | 7 << 8] as [Int32] {
      #expect(line(SQLiteError(code: code, message: "unknown function"))?.contains("Look for a trigger") == true)
    }
    #expect(line(PostgresError(sqlState: "42501", message: "denied"))?.contains("rights of the role") == true)
  }

  @Test func `a reader that has gone is not a failure`() {
    #expect(report(BrokenOutput(error: SystemError(code: 32))) == report(ExitStatus.done))
    #expect(report(ExitStatus.done).line == nil)
    #expect(report(BrokenOutput(error: SystemError(code: 28))).status == 74)
  }

  @Test func `an invalid command line points to the help`() throws {
    func failure(_ arguments: String...) -> ErrorReport? {
      do {
        _ = try LarderCommand.parseAsRoot(arguments)
        return nil
      } catch {
        return ErrorReport(error, arguments: arguments)
      }
    }
    #expect(
      failure("get", "memory:")?.line == "larder: Missing expected argument '<key> ...'. See `larder get --help`.")
    #expect(failure("get", "memory:")?.status == 64)
    let dashHint = "Put -- before a key or value that starts with -."
    #expect(
      failure("get", "memory:", "-k")?.line
        == "larder: Missing expected argument '<key> ...'. \(dashHint) See `larder get --help`.")
    #expect(failure("get", "memory:", "k", "--nosuch")?.line?.contains(dashHint) == true)
    // A known option is not mistaken for a key.
    #expect(
      failure("get", "memory:", "--key-hex")?.line
        == "larder: Missing expected argument '<key> ...'. See `larder get --help`.")
    #expect(
      failure("list", "memory:", "--prefix", "-x")?.line
        == "larder: Missing value for '--prefix <prefix>'. Put = before a value that starts with -, as in --prefix=-x. "
        + "See `larder list --help`.")
    #expect(failure("list", "memory:", "--prefix")?.line?.contains("starts with -") == false)
    // A swap of two letters is one edit.
    #expect(
      failure("list", "memory:", "--form", "a")?.line
        == "larder: Unknown option '--form'. Did you mean '--from'? See `larder list --help`.")
    #expect(
      failure("set", "memory:", "--rwa=1")?.line
        == "larder: Missing expected argument '<key>'. Did you mean '--raw'? See `larder set --help`.")
    #expect(failure("frob")?.line == "larder: Unexpected argument 'frob'. See `larder --help`.")
    #expect(failure("import", "memory:", "--batch", "0")?.status == 64)
    // A verb of a group can have the name of another verb.
    #expect(failure("queue", "dead", "purge")?.line?.contains("See `larder queue dead purge --help`.") == true)
    #expect(failure("get", "stat")?.line?.contains("See `larder get --help`.") == true)
  }

  @Test func `a store that cannot be opened is not a usage error`() {
    #expect(report(StoreError(.unsupported, during: .open, message: "no")).status == 65)
    #expect(report(StoreError(.unsupported, during: .compact, message: "no")).status == 64)
  }

  @Test func `the way out is named once`() {
    func line(_ message: String) -> String? {
      report(StoreError(.versionMismatch, during: .open, message: message)).line
    }
    #expect(
      line("the file has version 9; only versions up to 3 are supported")?.hasSuffix(
        "are supported. Use the version or program that wrote it; the file was left unchanged.") == true)
    #expect(
      line("create a new file from it with larder migrate, or open it with a program that runs with LMDB 0.9")?
        .hasSuffix(
          "runs with LMDB 0.9. The file was left unchanged.") == true)
  }

  @Test func `small exit codes are the tools own`() {
    let statuses = ExitStatus.allCases.map(\.rawValue)
    #expect(statuses.prefix(6) == [0, 1, 2, 3, 4, 5])
    #expect(statuses.dropFirst(6).allSatisfy { (64...78).contains($0) })
  }
}
