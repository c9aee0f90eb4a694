import Larder
import LarderExpiry
import LarderJSON
import LarderObservation
import Observation
import Synchronization
import TestSupport
import Testing

/// The Swift code of the guide `Modules/Decorators/LarderObservation/LarderObservation.docc/ObservingStores.md`.
///
/// `Scripts/guide-code` writes it into the guide.
@Suite(.timeLimit(.minutes(60))) struct ObservationGuideTests {
  struct Note: Codable, Equatable {
    var title: String
  }

  struct Session: Codable, Equatable {
    var user: String
  }

  struct Settings: Codable, Equatable {
    var fontSize = 12
  }

  /// The titles of all notes, as far as they are indexed.
  actor Titles {
    private var titles: [StoreKey: String] = [:]
    private var expected: ([StoreKey: String], CheckedContinuation<Void, Never>)?

    func replace(_ range: KeyRange, with notes: [StoreEntry<Note>]) {
      titles = titles.filter { !range.contains($0.key) }
      for note in notes { titles[note.key] = note.value.title }
      if let (expected, continuation) = expected, titles == expected {
        self.expected = nil
        continuation.resume()
      }
    }

    /// Waits until these are the titles.
    func wait(for expected: [StoreKey: String]) async {
      if titles == expected { return }
      await withCheckedContinuation { self.expected = (expected, $0) }
    }
  }

  /// A screen whose contents can be awaited.
  final class Screen: Sendable {
    let shown: AsyncStream<[String]>
    private let continuation: AsyncStream<[String]>.Continuation

    init() {
      (shown, continuation) = AsyncStream.makeStream()
    }

    func show(_ titles: [String]) async { continuation.yield(titles) }

    /// Waits until these titles are shown.
    func wait(for expected: [String]) async -> Bool {
      for await titles in shown where titles == expected { return true }
      return false
    }
  }

  private let scratch: TemporaryFolder
  private var folder: String { scratch.path }

  init() throws {
    scratch = try TemporaryFolder()
  }

  @Test func `changes and states`() async throws {
    let (titles, screen) = (Titles(), Screen())
    // snippet.overview
    let notes = try await JSONFileStore<Note>(path: folder + "/notes.json").observable()
    let changes = notes.changes()
    let indexing = Task {
      for await change in changes {
        let current = try await notes.entries(in: change.range, limit: .max, order: .ascending)
        await titles.replace(change.range, with: current)
      }
    }
    try await notes.setValue(Note(title: "Buy milk"), forKey: "inbox/7")
    // snippet.end

    await titles.wait(for: ["inbox/7": "Buy milk"])
    try await notes.apply([.removeAll(.prefix("inbox/")), .set("inbox/8", Note(title: "Sell milk"))])
    await titles.wait(for: ["inbox/8": "Sell milk"])

    // snippet.show-the-current-state-2
    let showing = Task {
      for try await newest in notes.entries(observing: .prefix("inbox/"), limit: 20, order: .descending) {
        await screen.show(newest.map(\.value.title))
      }
    }
    // snippet.end
    #expect(await screen.wait(for: ["Sell milk"]))
    try await notes.setValue(Note(title: "Call Ada"), forKey: "inbox/9")
    #expect(await screen.wait(for: ["Call Ada", "Sell milk"]))
    // The loop over the changes reads the store, so it must not be behind when the store is closed.
    await titles.wait(for: ["inbox/8": "Sell milk", "inbox/9": "Call Ada"])

    try await notes.close()
    try await indexing.value
    try await showing.value
  }

  @Test func `an iterator that survives errors`() async throws {
    let screen = Screen()
    let notes = MemoryStore<Note>().observable()
    let following = Task {
      // snippet.show-the-current-state
      var values = notes.updates(forKey: "pinned").makeAsyncIterator()
      while true {
        do {
          guard let note = try await values.next() else { break }
          await screen.show([note?.title ?? "nothing is pinned"])
        } catch {
          print("the note cannot be read:", error)
        }
      }
      // snippet.end
    }
    #expect(await screen.wait(for: ["nothing is pinned"]))
    try await notes.setValue(Note(title: "Buy milk"), forKey: "pinned")
    #expect(await screen.wait(for: ["Buy milk"]))
    try await notes.close()
    await following.value
  }

  @Test func `entries that expire`() async throws {
    // snippet.entries-that-expire
    let sessions = try await JSONFileStore(path: folder + "/sessions.json", codec: .json(Session.self).expiring())
      .observable()
      .expiring(.sliding(.seconds(1800)))
    let session = sessions.updates(forKey: "7f3a")
    // snippet.end

    var states = session.makeAsyncIterator()
    #expect(try await states.next() == .some(nil))
    try await sessions.setValue(Session(user: "Ada"), forKey: "7f3a")
    #expect(try await states.next()??.user == "Ada")
    // It is absent from the deadline on, without any write.
    try await sessions.touch("7f3a", timeToLive: .after(.milliseconds(20)))
    #expect(try await states.next() == .some(nil))
    try await sessions.close()
  }

  @Test @MainActor func `a user interface`() async throws {
    let notes = MemoryStore<Note>().observable()
    // snippet.user-interfaces
    let newest = ObservedEntries(notes, in: .prefix("inbox/"), limit: 20, order: .descending)
    // snippet.end
    try await notes.setValue(Note(title: "Buy milk"), forKey: "inbox/7")
    while newest.entries.map(\.value.title) != ["Buy milk"] {
      await withCheckedContinuation { continuation in
        withObservationTracking {
          _ = newest.entries
        } onChange: {
          continuation.resume()
        }
      }
      await Task.yield()
    }
    #expect(newest.isLoaded && newest.error == nil)
    try await notes.close()
  }

  @Test @MainActor func `settings with a default`() async throws {
    let store = MemoryStore<Settings>().observable()
    // snippet.user-interfaces-2
    let settings = ObservedValue(store, forKey: "settings", default: Settings())
    try await settings.update { $0.fontSize = 16 }
    // snippet.end
    #expect(try await store.value(forKey: "settings") == Settings(fontSize: 16))
    while settings.value.fontSize != 16 { await Task.yield() }
    try await store.close()
  }

  @Test func `an observer`() async throws {
    let notes = MemoryStore<Note>().observable()
    let unread = Atomic(false)
    // snippet.observers-of-your-own
    let observation = notes.observe(.prefix("inbox/")) { event in
      if case .changed = event { unread.store(true, ordering: .relaxed) }
    }
    // snippet.end

    try await notes.setValue(Note(title: "Buy milk"), forKey: "done/7")
    let isOther = unread.exchange(false, ordering: .relaxed)
    // The observer was called when the write returns.
    try await notes.setValue(Note(title: "Buy milk"), forKey: "inbox/7")
    let isOwn = unread.exchange(false, ordering: .relaxed)
    observation.cancel()
    try await notes.setValue(Note(title: "Buy milk"), forKey: "inbox/8")
    let isLater = unread.exchange(false, ordering: .relaxed)
    #expect(!isOther && isOwn && !isLater)
    try await notes.close()
  }

  @Test func `the first example is short`() throws {
    let guide = try Guide("Modules/Decorators/LarderObservation/LarderObservation.docc/ObservingStores.md")
    let example = try #require(guide.pieces.first { $0.contains("changes()") })
    #expect(example.split(separator: "\n").count <= 15)
  }
}
