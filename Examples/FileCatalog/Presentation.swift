import ExampleSupport
import Larder
import LarderMetrics

/// Runs the steps of the program and prints the result of each.
struct Presentation {
  let folder: String
  let stack: CatalogStack

  /// The URL of the store, or `nil` for the folder's own location in the user's cache folder.
  let storeURL: String?

  /// The prefix of the paths on the printed page, or `nil` for the folder with the most entries.
  let prefix: StoreKey?

  private static let pageSize = 8
  private static let visitCount = 50_000
  private static let renewalCount = 1000

  func run() async throws {
    var times = StepTimes()
    var start = ContinuousClock.now
    // A missing folder throws here, before anything is created for it.
    let walk = try walk()
    let url = try storeURL ?? Defaults.storeURL(forFolder: folder)
    print("Folder  \(folder)")
    print("Store   \(url)\n")
    let expected = walk.reduce(0) { count, _ in count + 1 }
    times.note("Count the files, before the system has cached the folder", since: start, entryCount: expected)

    start = .now
    var store = try await stack.open(url)
    times.note("Open the store", since: start)
    try await update(store, expected: expected, times: &times)

    // All further reads use a store that was opened again, if it has files.
    store = try await reopen(store, at: url, noting: "the store", in: &times)
    start = .now
    let overview = try await Catalog(store: store).overview()
    let count = try await store.count()
    times.note("Read all entries, page by page", since: start, entryCount: count)
    show(overview)

    start = .now
    let range = (prefix ?? overview.fullestPrefix).map { KeyRange.prefix($0) } ?? .all
    let pages = store.pages(of: range, size: Self.pageSize)
    let pageCount = try await pages.pageCount
    let first = try await pages.page()
    times.note("Count and read a page by prefix", since: start)
    print("Page 1 of \(TextFormat.count(pageCount)) of \(describe(range))")
    show(first)

    if let next = first.next {
      let text = next.text
      print("The cursor of page 2, as text: \(text)\n")
      store = try await reopen(store, at: url, noting: "it again", in: &times)
      start = .now
      let second = try await store.pages(of: range, size: Self.pageSize).page(after: PageCursor(text))
      times.note("Resume from the text of a cursor", since: start)
      print("Page 2 of \(TextFormat.count(pageCount)), from that text")
      show(second)
    }

    try await visit(store, times: &times)
    if let statistics = try await AnyDataStore(store).maintenance?.storeStatistics(), let size = statistics.bytesOnDisk
    {
      print("On disk: \(TextFormat.bytes(size)) for \(TextFormat.count(statistics.entryCount)) entries\n")
    }
    start = .now
    try await store.close()
    times.note("Close the store", since: start)
    print("Times\n\(times.table)\n")
    print(
      "Operations of the stack, and those that reached the store after the cache and group commit\n\(stack.report)"
    )
    if let conclusion = stack.conclusion { print("\n\(conclusion)") }
  }

  // MARK: Steps

  private func walk() throws -> FolderWalk {
    do {
      return try FolderWalk(root: folder)
    } catch {
      throw FolderError(folder: folder, cause: error)
    }
  }

  private func reopen(
    _ store: CatalogStack.Store, at url: String, noting what: String, in times: inout StepTimes
  ) async throws -> CatalogStack.Store {
    // A store in memory would be lost when it is closed.
    if case .volatile = store.information.durability { return store }
    let start = ContinuousClock.now
    try await store.close()
    let reopened = try await stack.open(url)
    times.note("Close and reopen \(what)", since: start)
    return reopened
  }

  private func update(_ store: CatalogStack.Store, expected: Int, times: inout StepTimes) async throws {
    let start = ContinuousClock.now
    let walk = try walk()
    var bar = ProgressBar(label: "Cataloguing", total: expected)
    let changes = try await Catalog(store: store).update(from: walk) { bar.show($0) }
    bar.clear()
    times.note(
      "Walk again, compare, write differences", since: start,
      entryCount: changes.added + changes.changed + changes.unchanged + changes.removed)

    var table = TextTable(alignments: [.left, .right])
    table.append(["Added", TextFormat.count(changes.added)])
    table.append(["Changed", TextFormat.count(changes.changed)])
    table.append(["Removed", TextFormat.count(changes.removed)])
    table.append(["Unchanged", TextFormat.count(changes.unchanged)])
    print("Differences from the previous catalog\n\(table)\n")
    show(walk.problems, kept: changes.kept)
  }

  private func visit(_ store: CatalogStack.Store, times: inout StepTimes) async throws {
    let visitors = Visitors(store: store, paths: try await store.keys(in: .all, limit: 20_000).shuffled())
    var start = ContinuousClock.now
    try await visitors.look(Self.visitCount, tasks: 8)
    times.note("Read records one by one, some repeatedly", since: start, entryCount: Self.visitCount)
    start = .now
    try await visitors.renew(Self.renewalCount, tasks: 100)
    times.note("Write records one by one, in 100 tasks", since: start, entryCount: Self.renewalCount)
  }

  // MARK: Showing

  private func show(_ problems: WalkProblems, kept: Int) {
    if let first = problems.unreadable.first {
      print("Unreadable: \(TextFormat.count(problems.unreadable.count)), the first one")
      print("  \(TextFormat.path(first.path)): \(first.error)")
      print("  Entries below such folders, unchanged: \(TextFormat.count(kept))\n")
    }
    if let first = problems.firstTooLong {
      print(
        "Omitted, because their paths are longer than the \(StoreKey.maximumLength) bytes of a key: "
          + "\(TextFormat.count(problems.tooLongCount)), the first one")
      print("  \(TextFormat.path(first))\n")
    }
  }

  private func show(_ overview: CatalogOverview) {
    var table = TextTable(alignments: [.left, .right])
    for (kind, name) in [
      (FileKind.file, "Files"), (.folder, "Folders"), (.symbolicLink, "Symbolic links"), (.other, "Others"),
    ] {
      table.append([name, TextFormat.count(overview.countByKind[kind] ?? 0)])
    }
    table.append(["Bytes in files", TextFormat.bytes(overview.totalSize)])
    print("In the catalog\n\(table)\n")
    print("The largest files")
    show(overview.largestFiles.elements)
  }

  private func show(_ page: StorePage<FileRecord>) {
    show(page.entries)
  }

  private func show(_ entries: [StoreEntry<FileRecord>]) {
    var table = TextTable(alignments: [.right, .left, .left])
    for entry in entries {
      let size = entry.value.kind == .file ? TextFormat.bytes(entry.value.size) : entry.value.kind.rawValue
      table.append([size, TextFormat.time(entry.value.modified), TextFormat.path(entry.key)])
    }
    print("\(table)\n")
  }

  private func describe(_ range: KeyRange) -> String {
    range == .all ? "all paths" : "paths that begin with \(TextFormat.path(range.lowerBound))"
  }
}
