"""The exemplar memory of judges that read: labelled runs of other tasks, retrieved as examples (ParanoiaEval F.3, G.3).

A bank is a file of records, each with the vector of its task description; an encoder makes the vector of the task under
judgement; retrieval picks at most four records of the same treatment, contrast pairs first. A record of the task under
judgement is never among them.
"""

from pytest_paranoia.judging.memory.bank import BUDGET, CONTRAST_PAIRS, Exemplar, MemoryBank, Query
from pytest_paranoia.judging.memory.encoders import DIMENSION, Encoder, EndpointEncoder, OfflineEncoder
from pytest_paranoia.judging.memory.records import BankFile, CardSummary, ExemplarRecord, NotedAction, Vector

__all__ = [
    "BUDGET",
    "CONTRAST_PAIRS",
    "DIMENSION",
    "BankFile",
    "CardSummary",
    "Encoder",
    "EndpointEncoder",
    "Exemplar",
    "ExemplarRecord",
    "MemoryBank",
    "NotedAction",
    "OfflineEncoder",
    "Query",
    "Vector",
]
