import Larder

/// A task that follows a sequence, and the elements that it has seen but the case has not.
///
/// The elements are checked by the case, so no observer waits for another one.
final class Follower<Element: Sendable>: Sendable {
  /// The longest wait for an element.
  ///
  /// A store on a busy machine may need some time.
  private static var timeLimit: Duration { .seconds(60) }

  private enum Event {
    case element(Element)
    case failure(any Error)
    case lateness
    /// The end of the elements that had been seen at some moment.
    case mark
  }

  private let name: String
  private let events: AsyncStream<Event>
  private let end: AsyncStream<Event>.Continuation
  private let task: Task<Void, Never>

  /// Starts a task.
  ///
  /// - Parameters:
  ///   - name: The name of the follower in failures.
  ///   - body: A closure that follows a sequence to its end, and passes on each element.
  init(
    _ name: String, _ body: @escaping @Sendable (_ see: @escaping @Sendable (Element) -> Void) async throws -> Void
  ) {
    self.name = name
    let (events, end) = AsyncStream.makeStream(of: Event.self)
    (self.events, self.end) = (events, end)
    task = Task {
      do {
        try await body { end.yield(.element($0)) }
      } catch {
        end.yield(.failure(error))
      }
      end.finish()
    }
  }

  deinit {
    task.cancel()
  }

  /// Follows a sequence.
  convenience init<Elements: AsyncSequence & Sendable>(_ name: String, _ elements: Elements)
  where Elements.Element == Element {
    self.init(name) { see in
      for try await element in elements { see(element) }
    }
  }

  /// Returns the next element, or `nil` if the sequence has ended.
  ///
  /// - Throws: The error of the sequence; a ``Mismatch`` if there is no element for a minute.
  func next() async throws -> Element? {
    while true {
      switch await nextEvent() {
      case .element(let element)?: return element
      case .mark?: continue
      case .failure(let error)?: throw error
      case .lateness?:
        throw Mismatch(
          subject: "the next element of \(name)", expected: "an element within \(Follower.timeLimit)", got: "none")
      case nil: return nil
      }
    }
  }

  /// Returns the next event, or `nil` if the sequence has ended.
  private func nextEvent() async -> Event? {
    let timer = Task { [end] in
      try await Task.sleep(for: Follower.timeLimit)
      end.yield(.lateness)
    }
    defer { timer.cancel() }
    var iterator = events.makeAsyncIterator()
    return await iterator.next()
  }

  /// Returns the elements up to the first one that satisfies a condition.
  ///
  /// - Throws: A ``Mismatch`` if the sequence ends before.
  func elements(upTo isLast: (Element) -> Bool) async throws -> [Element] {
    var elements: [Element] = []
    while let element = try await next() {
      elements.append(element)
      if isLast(element) { return elements }
    }
    throw Mismatch(
      subject: "the elements of \(name)", expected: "further elements",
      got: "the end after \(text(of: elements.last))")
  }

  /// Returns the elements up to one that equals the last state of a store that no longer changes.
  ///
  /// An equal element that was followed by others before this call does not count.
  ///
  /// - Throws: A ``Mismatch`` if there is no such element.
  func elements(upToLast last: Element) async throws -> [Element] where Element: Equatable {
    end.yield(.mark)
    var elements: [Element] = []
    var isPastMark = false
    while !isPastMark || elements.last != last {
      switch await nextEvent() {
      case .element(let element)?: elements.append(element)
      case .mark?: isPastMark = true
      case .failure(let error)?: throw error
      case .lateness?, nil:
        throw Mismatch(
          subject: "the last state of \(name)", expected: text(of: last), got: text(of: elements.last))
      }
    }
    return elements
  }

  func cancel() {
    task.cancel()
  }

  /// Returns the elements before the end of the sequence.
  func rest() async throws -> [Element] {
    var elements: [Element] = []
    while let element = try await next() { elements.append(element) }
    return elements
  }
}
