#if HTTPCache
import HTTPTypes

extension HTTPCacheRules {
  /// Decides on a 206 (RFC 9111, sections 3.3 and 3.4; RFC 9110, section 15.3.7).
  func decidePart(_ arrival: Arrival) -> ResponseDecision {
    let range = arrival.contentRange
    if case .complete(let position, let missing) = arrival.exchange.purpose {
      return completion(arrival, of: position, missing: missing, range)
    }
    var decision = arrival.passingOn()
    guard let range, let bytes = range.bytes, arrival.request.hasRange else {
      decision.refusal = .part
      decision.mark(.part, name)
      return decision
    }
    var candidate = arrival.candidate
    candidate.status = 200
    candidate.length = range.length
    guard var part = storable(arrival, candidate, &decision) else { return decision }
    part.removeBodyLength()
    let stored = arrival.exchange.stored
    var extended: Int?
    if let position = arrival.selection.matching.first(where: { canCombine(stored[$0], with: candidate) }) {
      guard let combined = freshened(stored[position], by: arrival) else { return decision }
      if stored[position].isComplete || stored[position].missing(in: bytes).isEmpty {
        if use(of: combined, arrival) == .store { decision.freshened = [(position, combined)] }
        return decision
      }
      let ranges = combined.ranges.flatMap { $0.without(bytes) }
      if ranges.count < largestPartCount {
        part = combined
        part.ranges = ranges
        extended = position
      }
    }
    decision.storing = ResponseDecision.Storing(
      response: part, receiving: bytes, extending: extended, replacing: arrival.selection.matching)
    decision.markStored(name)
    return decision
  }

  /// Returns whether a stored response and a new part are parts of one representation.
  private func canCombine(_ stored: StoredResponse, with part: StoredResponse) -> Bool {
    stored.status == 200 && stored.length != nil && stored.length == part.length
      && stored.facts.validator.stronglyEquals(part.facts.validator)
  }

  /// Decides on a 206 that was asked for to complete a stored response.
  private func completion(
    _ arrival: Arrival, of position: Int, missing: Range<Int64>, _ range: ContentRange?
  ) -> ResponseDecision {
    let stored = arrival.exchange.stored[position]
    var candidate = arrival.candidate
    candidate.length = range?.length
    guard let range, range.bytes == missing, canCombine(stored, with: candidate),
      let combined = freshened(stored, by: arrival)
    else { return again(arrival) }
    var whole = combined
    whole.ranges.append(missing)
    whole.ranges.sort { $0.lowerBound < $1.lowerBound }
    guard case .answer(let answer) = form(of: whole, for: arrival.request, isHead: false) else { return again(arrival) }
    var status = arrival.status
    if use(of: combined, arrival) == .store { status.isStored = true }
    let reuse = reuse(
      combined, at: position, as: answer, Freshness(combined, at: arrival.responseTime, self), status)
    var decision = ResponseDecision(
      delivery: .combined(reuse, receiving: missing), status: reuse.status, expectedLength: Int64(missing.count))
    if status.isStored {
      decision.storing = ResponseDecision.Storing(
        response: combined, receiving: missing, extending: position, replacing: arrival.selection.matching)
    } else {
      decision.refusal = .part
    }
    return decision
  }
}

extension Arrival {
  /// The bytes that a 206 has, or `nil` if it doesn't say so or contradicts itself.
  fileprivate var contentRange: ContentRange? {
    let lines = response.headerFields[fields: .contentRange]
    guard lines.count == 1, let range = ContentRange(lines[0].bytes), let bytes = range.bytes,
      !candidate.facts.hasInvalidLength,
      candidate.facts.contentLength == nil || candidate.facts.contentLength == Int64(bytes.count)
    else { return nil }
    return range
  }
}

extension Range<Int64> {
  /// Returns what is left of the range without some bytes.
  fileprivate func without(_ bytes: Range<Int64>) -> [Range<Int64>] {
    let before = clamped(to: Swift.min(lowerBound, bytes.lowerBound)..<bytes.lowerBound)
    let after = clamped(to: bytes.upperBound..<Swift.max(upperBound, bytes.upperBound))
    return [before, after].filter { !$0.isEmpty }
  }
}

extension StoredResponse {
  /// Removes the fields that describe the one part that was received.
  fileprivate mutating func removeBodyLength() {
    fields = fields.filter { $0.name != .contentRange && $0.name != .contentLength }
  }
}
#endif
