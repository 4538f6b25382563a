import pytest

from samesense.data.languages import reads_as_english


@pytest.mark.parametrize(
    ("texts", "english"),
    [
        (["The court ruled that the tenant must pay.", "A contract is void without a signature."], True),
        (["Das Gericht hat den Antrag abgelehnt.", "Die Frist ist kurz, und der Mieter zahlt nicht."], False),
        (["Le tribunal a rejeté la demande.", "Les délais sont courts et le locataire ne paie pas."], False),
        (["El tribunal rechazó la demanda.", "Los plazos son cortos y el inquilino no paga por la casa."], False),
        (["Суд отклонил иск.", "Срок короткий."], False),
        (["法院驳回了申请。", "期限很短。"], False),
        (["Red shoes 42", "USB cable 2 m", "Crème brûlée"], True),
        (["He drove from Los Angeles to Las Vegas with the van and the die was cast."], True),
        (["", "12 + 3"], True),
        ([], True),
    ],
)
def test_texts_of_other_languages_are_told(texts, english):
    assert reads_as_english(texts) == english
