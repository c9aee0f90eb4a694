import ArgumentParser
import Larder
import StoreAccess

/// `larder verify`.
struct VerifyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Read and check the whole store, and list the damage.",
    discussion: """
      Prints a line {"key":...,"place":...,"message":...} for each finding, which is a damaged entry or an encrypted \
      one whose key is not available. An unknown key is null. Exits with 2 if there is any. The remains of a crash are \
      recovered, and are not damage. Without --key-ring, encrypted values are not examined. An lmdb: store has one finding \
      for each damaged page, and may be of LMDB 0.9 or 1.0.

        larder verify json:users.json
      """)

  @OptionGroup var store: StoreArgument
  @OptionGroup var access: AccessOption

  func run() async throws {
    var report = VerificationReport(entryCount: 0)
    var isOpened = true
    var isLocked = false
    var target = store.target
    target.examinesPages = true
    do {
      try await StoreSession.runMovable(target, access: access.storeAccess) { found in
        isLocked = found.isLocked
        return try await MovableStore(decodingIfPossible: found)
      } _: { store, output in
        report = try await store.verify()
        try print(report.findings, to: output)
      }
    } catch let error as StoreError where error.code == .corrupted && error.operation == .open {
      // Damage that prevents opening the store is a finding, too, and not a failure.
      isOpened = false
      report.findings = [VerificationReport.Finding(damage: error)]
      let output = ByteOutput()
      try print(report.findings, to: output)
      try output.flush()
    }
    Diagnostics.writeLine(
      isOpened
        ? VerifyCommand.summary(of: report) + MovableStore.remark(isLocked: isLocked)
        : VerifyCommand.summaryOfUnopened)
    if !report.findings.isEmpty { throw ExitStatus.damaged }
  }

  /// The summary for a store that cannot be opened, whose number of entries is unknown.
  static let summaryOfUnopened = "the store cannot be opened, so nothing else was checked"

  /// Returns a summary of the findings in one line.
  static func summary(of report: VerificationReport) -> String {
    let entries = EntryCount.text(report.entryCount)
    return switch report.findings.count {
    case 0: "\(entries), no damage"
    case 1: "\(entries), 1 finding"
    case let count: "\(entries), \(count) findings"
    }
  }

  private func print(_ findings: [VerificationReport.Finding], to output: ByteOutput) throws {
    for finding in findings {
      try output.writeLine { EntryLine.append(finding, to: &$0) }
    }
  }
}

extension VerificationReport.Finding {
  /// Creates a finding from an error that reports damage.
  ///
  /// - Parameters:
  ///   - error: The error.
  ///   - key: The key that was read. Defaults to the key of the error, if it has one.
  init(damage error: StoreError, key: StoreKey? = nil) {
    self.init(key: key ?? error.key, place: error.store, message: error.fullMessage)
  }
}
