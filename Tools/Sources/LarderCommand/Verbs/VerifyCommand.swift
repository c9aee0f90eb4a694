import ArgumentParser
import Larder

/// `larder verify`.
struct VerifyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Read and check everything, and list what is damaged.",
    discussion: """
      Prints a line {"key":…,"place":…,"message":…} for each damaged entry, with null for a key that is not known, and \
      ends with 2 where there is any. What a crash left unfinished is recovered and no damage.

        larder verify json:users.json
      """)

  @OptionGroup var store: StoreArgument
  @OptionGroup var access: AccessOption

  func run() async throws {
    var report = VerificationReport(entryCount: 0)
    var isOpened = true
    do {
      try await StoreSession.run(
        store.target, createsIfMissing: false, access: access.storeAccess
      ) { store, output in
        if let maintenance = store.information.maintenance {
          report = try await maintenance.verify()
        } else {
          report = try await EntryByEntryVerification.report(on: store)
        }
        try print(report.findings, to: output)
      }
    } catch let error as StoreError where error.code == .corrupted && error.operation == .open {
      // So damaged that it does not even open: that is what was asked for, not a failure.
      isOpened = false
      report.findings = [VerificationReport.Finding(damage: error)]
      let output = ByteOutput()
      try print(report.findings, to: output)
      try output.flush()
    }
    Diagnostics.writeLine(isOpened ? VerifyCommand.summary(of: report) : VerifyCommand.summaryOfUnopened)
    if !report.findings.isEmpty { throw ExitStatus.damaged }
  }

  /// What is said of a store that cannot be opened: how many entries it has is not known.
  static let summaryOfUnopened = "the store cannot be opened, so nothing else was checked"

  /// What was found, in one line.
  static func summary(of report: VerificationReport) -> String {
    let entries = EntryCount.text(report.entryCount)
    return switch report.findings.count {
    case 0: "\(entries), no damage"
    case 1: "\(entries), 1 place is damaged"
    case let count: "\(entries), \(count) places are damaged"
    }
  }

  private func print(_ findings: [VerificationReport.Finding], to output: ByteOutput) throws {
    for finding in findings {
      try output.writeLine { EntryLine.append(finding, to: &$0) }
    }
  }
}
