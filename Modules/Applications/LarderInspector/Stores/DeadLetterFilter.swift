#if Inspector
import Foundation
import HTTPTypes
import Larder

/// The dead letters that a change of many is about.
struct DeadLetterFilter: Sendable, Hashable {
  /// The number of dead letters that one step of a change reads.
  static let stepLength = 500

  /// The rule for what changes between the confirmation and the last step.
  static let rule: HTML = """
    <p>It is made in steps of 500, and can be stopped between them. Dead letters that are added after this confirmation are left. \
    Those that another program requeues or removes first are skipped, and so are those whose id is in the queue again.</p>
    """

  /// The reason, or `nil` for any.
  var reason: String?
  /// A text that the value contains, byte by byte, or `nil` for any value.
  var text: String?
  /// The time of the confirmation, in milliseconds since 1970.
  ///
  /// Later dead letters are left.
  var until: Int

  /// Reads a filter from the fields of a form.
  ///
  /// Before the confirmation, no time is known, and all are meant.
  init(_ fields: FormFields) throws {
    reason = fields["reason"]
    text = Self.text(of: fields)
    guard let until = Int(fields["until"] ?? "\(Int.max)") else {
      throw PageFailure(.badRequest, "the form has no time")
    }
    self.until = until
  }

  init(reason: String?, text: String?, until: Int) {
    (self.reason, self.text, self.until) = (reason, text, until)
  }

  /// Returns the text in the field of a search, or `nil` for any value.
  static func text(of fields: FormFields) -> String? {
    fields["contains"].flatMap { $0.isEmpty ? nil : $0 }
  }

  func contains(_ letter: QueueDeadLetter) -> Bool {
    guard reason == nil || letter.reason == reason, letter.date.timeIntervalSince1970 * 1000 <= Double(until) else {
      return false
    }
    guard let text else { return true }
    return letter.bytes?.contains(Array(text.utf8)) ?? false
  }

  /// The fields of a form by which the filter is read again.
  var fields: [(String, String)] {
    (reason.map { [("reason", $0)] } ?? []) + (text.map { [("contains", $0)] } ?? [])
  }

  /// The dead letters as the object of a sentence.
  var description: String {
    "all dead letters" + (reason.map { " with the reason “\($0)”" } ?? "")
      + (text.map { " whose values contain “\($0)”" } ?? "")
  }
}

extension InspectedQueue {
  /// Requeues or removes the dead letters of a step, and skips those for which that is not possible.
  ///
  /// - Returns: The number of dead letters requeued or removed.
  func change(_ letters: [QueueDeadLetter], isRequeue: Bool) async throws -> Int {
    let keys = letters.map(\.key)
    guard isRequeue else { return try await purge(keys) }
    do {
      return try await requeue(keys)
    } catch StoreError.Code.conflict {
      var count = 0
      for key in keys {
        do {
          count += try await requeue([key])
        } catch StoreError.Code.conflict {
          // An item with this id is in the queue; the dead letter stays.
        }
      }
      return count
    }
  }
}
#endif
