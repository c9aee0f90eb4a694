#if LMDB
import Larder

extension ExaminedStore: MaintainableStore {
  func storeStatistics() async throws -> StoreStatistics {
    try await environment.read(for: .statistics) { [self] snapshot in
      var count = 0
      try TreeScan.run(
        from: try root(in: snapshot, during: .statistics), in: snapshot, readsValues: false,
        unreached: unreached(in: snapshot)
      ) { item in
        if case .entry = item { count += 1 }
        return true
      }
      return StoreStatistics(
        entryCount: count, bytesOnDisk: Int64(snapshot.pageCount) * Int64(snapshot.meta.pageSize))
    }
  }

  /// Reads and checks the entries, and the pages that all stores of the environment share.
  ///
  /// Each damaged page is one finding.
  func verify() async throws -> VerificationReport {
    var findings = PageFindings(store: information.name)
    findings.merge(
      try await environment.read(for: .verify) { [information] snapshot in
        try PageFindings(ofSharedPagesIn: snapshot, store: information.name)
      })
    var report = VerificationReport(entryCount: 0)
    var remaining: KeyRange? = .all
    while let range = remaining {
      let slice = try await environment.read(for: .verify) { [self] in try verifiedSlice(of: range, in: $0) }
      report.entryCount += slice.entryCount
      report.findings += slice.values
      findings.merge(slice.pages)
      remaining = slice.remaining
    }
    report.findings += findings.all
    return report
  }

  /// The result of the verification of a part of the entries.
  ///
  /// A slice at a time, because a long read transaction would keep writers from reusing free pages.
  private struct Slice: Sendable {
    var entryCount = 0
    var values: [VerificationReport.Finding] = []
    var pages: PageFindings
    var remaining: KeyRange?
  }

  private static var sliceSize: Int { 1000 }

  private func verifiedSlice(of range: KeyRange, in snapshot: DataFileSnapshot) throws -> Slice {
    var slice = Slice(pages: PageFindings(store: information.name))
    let root = try root(in: snapshot, during: .verify)
    try TreeScan.run(from: root, in: snapshot, range: range, unreached: unreached(in: snapshot)) { item in
      switch item {
      case .damage(let damage, let lost): slice.pages.add(damage, losing: lost)
      case .entry(let key, let content):
        slice.entryCount += 1
        var problem: String? = "the entry is damaged: it has no value"
        if case .value(let bytes) = content {
          problem = bytes.withUnsafeBytes { coder.problem(in: $0, forKey: key) }
        }
        if let problem {
          slice.values.append(VerificationReport.Finding(key: key, place: information.name, message: problem))
        }
        if slice.entryCount == ExaminedStore.sliceSize {
          slice.remaining = range.after(key)
          return false
        }
      }
      return true
    }
    return slice
  }

  func compact() async throws { throw unsupported(.compact) }

  func backup(to path: String, compacting: Bool) async throws { throw unsupported(.backup) }
}

/// The findings of a verification, one for each damaged page.
struct PageFindings: Sendable {
  private let store: String
  private var pages: [(page: UInt64, finding: VerificationReport.Finding)] = []
  private var known: Set<UInt64> = []

  init(store: String) {
    self.store = store
  }

  /// The findings, in the order in which the pages were found.
  var all: [VerificationReport.Finding] { pages.map(\.finding) }

  /// Adds a damaged page, unless it is known.
  mutating func add(_ damage: PageDamage, losing lost: KeyRange?) {
    let key = lost.flatMap { $0 == .only($0.lowerBound) ? $0.lowerBound : nil }
    let loss =
      lost == nil
      ? "" : key == nil ? ", so that the entries that it held cannot be read" : ", so that an entry cannot be read"
    let remark = damage.remark.map { "; \($0)" } ?? ""
    add(damage.page, key: key, "the page \(damage.problem)\(loss)\(remark)")
  }

  private mutating func add(_ page: UInt64, key: StoreKey? = nil, _ message: String) {
    guard known.insert(page).inserted else { return }
    let finding = VerificationReport.Finding(key: key, place: "\(store), page \(page)", message: message)
    pages.append((page, finding))
  }

  /// Adds other findings.
  mutating func merge(_ other: PageFindings) {
    for (page, finding) in other.pages where known.insert(page).inserted { pages.append((page, finding)) }
  }

  /// Examines the pages that belong to no store: the meta pages, the list of databases and that of free pages.
  ///
  /// - Throws: `FileError`.
  init(ofSharedPagesIn snapshot: DataFileSnapshot, store: String) throws {
    self.init(store: store)
    for page in snapshot.damagedMetaPages {
      add(
        page,
        "the meta page is damaged; the state of the other one is read, which may be that before the latest transaction")
    }
    try TreeScan.run(from: snapshot.meta.main.root, in: snapshot) { item in
      if case .damage(let damage, let lost) = item { add(damage, losing: lost) }
      return true
    }
    try TreeScan.run(from: snapshot.meta.freePages.root, in: snapshot, hasIntegerKeys: true) { item in
      // The keys are numbers of transactions.
      if case .damage(let damage, _) = item { add(damage, losing: nil) }
      return true
    }
  }
}
#endif
