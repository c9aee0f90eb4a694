/// Those who wait, in the order in which they came; any of them may leave.
///
/// Each has a number, higher than those of all before. Coming, leaving and being served take O(1) over time, finding one
/// by its number O(log n), and the line is never much more than twice as long as there are who wait.
struct WaitingLine<Element: Sendable>: Sendable {
  private struct Place: Sendable {
    let number: UInt64
    // Nobody, where it was left.
    var element: Element?
  }

  private var places: [Place] = []
  // Before it, all were served.
  private var head = 0
  private var nextNumber: UInt64 = 0

  /// How many wait.
  private(set) var count = 0

  /// Whether nobody waits.
  var isEmpty: Bool { count == 0 }

  /// Who is served next.
  var first: Element? {
    // The place at the head is never one that was left.
    head < places.count ? places[head].element : nil
  }

  /// Enters someone at the end.
  ///
  /// - Returns: The number.
  mutating func append(_ element: Element) -> UInt64 {
    defer { nextNumber += 1 }
    if head > 32, head > places.count / 2 {
      places.removeSubrange(..<head)
      head = 0
    }
    places.append(Place(number: nextNumber, element: element))
    count += 1
    return nextNumber
  }

  /// Takes out who is first.
  @discardableResult
  mutating func removeFirst() -> (number: UInt64, element: Element)? {
    guard head < places.count, let element = places[head].element else { return nil }
    let number = places[head].number
    leave(head)
    return (number, element)
  }

  /// Takes out whoever has a number.
  ///
  /// - Returns: Who that was, or `nil` where nobody of that number waits.
  mutating func remove(_ number: UInt64) -> Element? {
    guard let index = index(of: number), let element = places[index].element else { return nil }
    leave(index)
    if places.count - head > 2 * count + 16 {
      places.removeAll { $0.element == nil }
      head = 0
    }
    return element
  }

  private mutating func leave(_ index: Int) {
    places[index].element = nil
    count -= 1
    while head < places.count, places[head].element == nil { head += 1 }
    if head == places.count {
      places.removeAll(keepingCapacity: places.count < 4096)
      head = 0
    }
  }

  private func index(of number: UInt64) -> Int? {
    // Mostly the last one is asked for, who has just come.
    if let last = places.last, last.number == number { return places.count - 1 }
    var (low, high) = (head, places.count)
    while low < high {
      let middle = low + (high - low) / 2
      if places[middle].number < number { low = middle + 1 } else { high = middle }
    }
    return low < places.count && places[low].number == number ? low : nil
  }
}
